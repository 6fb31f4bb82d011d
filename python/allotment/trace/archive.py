"""Arrays in a zip file (``.npz``), read without believing anything that the file says about itself."""

import io
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from allotment.text import one_line
from allotment.trace.error import TraceError

#: What a zip file with at least one member, and one without, starts with.
MAGICS = (b"PK\x03\x04", b"PK\x05\x06")

#: Bytes of the longest description of an array that is read; one column needs 128.
_MAX_HEAD_BYTES = 64 << 10

_HEAD_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True, slots=True)
class Array:
    """What a member says it holds, found to agree with its length. The numbers are not read yet."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    member: zipfile.ZipInfo
    #: Bytes of the member before the first number.
    start: int

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return self.member.file_size - self.start


class Archive:
    """An ``.npz`` file, open for reading. Every fault of the file is a :class:`TraceError`."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self.path = path
        with self._blaming_the_file("is a damaged or cut zip file"):
            self._zip = zipfile.ZipFile(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def fault(self, what: str) -> TraceError:
        """Make the exception for what is wrong with this file."""
        return TraceError(one_line(f"{self.path}: {what}"))

    def describe(self, name: str) -> Array | None:
        """Read what the column ``name`` says it holds; ``None`` if there is no such column."""
        members = [member for member in self._zip.infolist() if member.filename == f"{name}.npy"]
        if not members:
            return None
        if len(members) > 1:
            raise self.fault(f"column {name}: is there {len(members)} times")
        member = members[0]
        with (
            self._blaming_the_file(f"column {name}: is damaged or cut"),
            self._zip.open(member) as file,
            warnings.catch_warnings(),
        ):
            # NumPy warns about files written by Python 2, which read well.
            warnings.simplefilter("ignore")
            # NumPy would read a head as long as the head says it is, up to 4 GiB.
            head = io.BytesIO(file.read(_MAX_HEAD_BYTES))
            version = npy.read_magic(head)
            if version not in _HEAD_READERS:
                raise ValueError(f"npy format {version[0]}.{version[1]} is not known")
            shape, _, dtype = _HEAD_READERS[version](head)
        array = Array(name, shape, dtype, member, start=head.tell())
        self._compare_lengths(array)
        return array

    def read(self, array: Array) -> NDArray[Any]:
        """Read the numbers of an array; nobody can write to them."""
        with (
            self._blaming_the_file(f"column {array.name}: is damaged or cut"),
            self._zip.open(array.member) as file,
        ):
            file.read(array.start)
            # The length is the one that was checked, so that a member which unpacks to more cannot fill the
            # memory. zipfile compares the checksum with the last byte.
            numbers = file.read(array.nbytes)
            if len(numbers) < array.nbytes:
                raise EOFError(f"{array.nbytes - len(numbers)} bytes are missing")
            return np.frombuffer(numbers, array.dtype).reshape(array.shape)

    def _compare_lengths(self, array: Array) -> None:
        if array.dtype.hasobject:
            raise self.fault(f"column {array.name}: holds Python objects, which are not read")
        # In Python's integers: a shape from a file may be negative, or beyond 64 bits.
        count = 1
        for length in array.shape:
            count *= length
        if min(array.shape, default=0) < 0 or count * array.dtype.itemsize != array.nbytes:
            says = f"says it has shape {array.shape} of {array.dtype}"
            raise self.fault(f"column {array.name}: {says}, but holds {array.nbytes} bytes")

    @contextmanager
    def _blaming_the_file(self, what: str) -> Iterator[None]:
        """Turn whatever zipfile and NumPy raise over damaged bytes into one fault.

        They raise more than they document (``struct.error``, ``zlib.error``, ``RecursionError``, ...), so
        nothing but calls into them may stand under this.
        """
        try:
            yield
        except MemoryError as error:
            raise self.fault(f"{what}: more than fits into memory") from error
        except Exception as error:
            raise self.fault(f"{what}: {error or type(error).__name__}") from error
