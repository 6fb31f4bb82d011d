"""Reads arrays from an ``.npz`` file (a zip file) and validates every length and type that the file states."""

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

#: First bytes of a zip file with at least one member, and of one without.
MAGICS = (b"PK\x03\x04", b"PK\x05\x06")

#: Bytes of the longest ``.npy`` header that is read; that of one column takes 128.
_MAX_HEAD_BYTES = 64 << 10

_HEAD_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True, slots=True)
class Array:
    """Name, shape and type of an array in the file, consistent with the member's length. Holds no numbers."""

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
    """An ``.npz`` file, open for reading. Every defect of the file raises a :class:`TraceError`."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self.path = path
        with self._as_trace_error("is a damaged or truncated zip file"):
            self._zip = zipfile.ZipFile(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def fault(self, problem: str) -> TraceError:
        """Return the exception for a problem of this file."""
        return TraceError(one_line(f"{self.path}: {problem}"))

    def describe(self, name: str) -> Array | None:
        """Read the header of the column ``name``; return ``None`` if the file has no such column."""
        members = [member for member in self._zip.infolist() if member.filename == f"{name}.npy"]
        if not members:
            return None
        if len(members) > 1:
            raise self.fault(f"column {name}: occurs {len(members)} times")
        member = members[0]
        with (
            self._as_trace_error(f"column {name}: is damaged or truncated"),
            self._zip.open(member) as file,
            warnings.catch_warnings(),
        ):
            # NumPy warns about files written by Python 2, although it reads them.
            warnings.simplefilter("ignore")
            # NumPy would read as many bytes of header as the header states, up to 4 GiB.
            head = io.BytesIO(file.read(_MAX_HEAD_BYTES))
            version = npy.read_magic(head)
            if version not in _HEAD_READERS:
                raise ValueError(f"npy format {version[0]}.{version[1]} is not known")
            shape, _, dtype = _HEAD_READERS[version](head)
        array = Array(name, shape, dtype, member, start=head.tell())
        self._compare_lengths(array)
        return array

    def read(self, array: Array) -> NDArray[Any]:
        """Read the numbers of an array that ``describe`` returned, as a read-only NumPy array."""
        with (
            self._as_trace_error(f"column {array.name}: is damaged or truncated"),
            self._zip.open(array.member) as file,
        ):
            file.read(array.start)
            # Reads the checked length only, so that a member which decompresses to more cannot exhaust the
            # memory. zipfile verifies the checksum at the last byte.
            numbers = file.read(array.nbytes)
            if len(numbers) < array.nbytes:
                raise EOFError(f"{array.nbytes - len(numbers)} bytes are missing")
            return np.frombuffer(numbers, array.dtype).reshape(array.shape)

    def _compare_lengths(self, array: Array) -> None:
        if array.dtype.hasobject:
            raise self.fault(f"column {array.name}: holds Python objects, which are not read")
        # Python's integers, because a shape from a file may be negative or beyond 64 bits.
        count = 1
        for length in array.shape:
            count *= length
        if min(array.shape, default=0) < 0 or count * array.dtype.itemsize != array.nbytes:
            header = f"its header states shape {array.shape} of {array.dtype}"
            raise self.fault(f"column {array.name}: {header}, but it holds {array.nbytes} bytes")

    @contextmanager
    def _as_trace_error(self, problem: str) -> Iterator[None]:
        """Convert every exception that zipfile and NumPy raise over damaged bytes into a :class:`TraceError`.

        They raise more than they document (``struct.error``, ``zlib.error``, ``RecursionError``, ...). The body
        must therefore call only them, or this would hide a bug of ours.
        """
        try:
            yield
        except MemoryError as error:
            raise self.fault(f"{problem}: more than fits into memory") from error
        except Exception as error:
            raise self.fault(f"{problem}: {error or type(error).__name__}") from error
