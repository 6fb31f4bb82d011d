"""Reads arrays from an ``.npz`` file (a zip file) and validates every length and type that the file states."""

import io
import math
import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self

from allotment._core import one_line
from allotment.trace.error import TraceError

#: First bytes of a zip file with at least one member, and of one without.
MAGICS = (b"PK\x03\x04", b"PK\x05\x06")

#: Bytes of the longest ``.npy`` header that is read; that of one column takes 128.
_MAX_HEAD_BYTES = 64 << 10

#: Most characters of an exception's text in an error.
_MOST_TEXT = 200

#: The header that NumPy writes for whole numbers in one dimension and for one text: type and length.
_PLAIN_HEAD = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '[<|]([iuSU])(\d{1,9})', 'fortran_order': False, "
    rb"'shape': \((?:(\d{1,18}),)?\), \} *\n",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Array:
    """Name, shape and type of an array in the file, consistent with the member's length. Holds no numbers."""

    name: str
    shape: tuple[int, ...]
    #: NumPy's letter of the type, such as ``"i"`` for integers with sign and ``"U"`` for text.
    kind: str
    #: Bytes of one number.
    itemsize: int
    #: NumPy's name of the type, for messages.
    type_name: str
    member: zipfile.ZipInfo
    #: Bytes of the member before the first number.
    start: int
    #: Whether the most significant byte of a number is the first.
    big_endian: bool = False

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
        ):
            # A header may state that it has up to 4 GiB.
            head = file.read(_MAX_HEAD_BYTES)
        array = _plain_head(head, name, member)
        if array is None:
            with self._as_trace_error(f"column {name}: is damaged or truncated"):
                array = _any_head(head, name, member)
        if array.kind == "O":
            raise self.fault(f"column {name}: holds Python objects, which are not read")
        # A shape from a file may be negative or beyond 64 bits.
        if min(array.shape, default=0) < 0 or math.prod(array.shape) * array.itemsize != array.nbytes:
            header = f"its header states shape {array.shape} of {array.type_name}"
            raise self.fault(f"column {name}: {header}, but it holds {array.nbytes} bytes")
        return array

    def read(self, array: Array) -> bytes:
        """Read the bytes of the numbers of an array that ``describe`` returned."""
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
            return numbers

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
            # NumPy quotes a header that it cannot read, of up to 10,000 bytes.
            said = one_line(str(error) or type(error).__name__)
            raise self.fault(f"{problem}: {said[:_MOST_TEXT]}{'...' * (len(said) > _MOST_TEXT)}") from error


def _plain_head(head: bytes, name: str, member: zipfile.ZipInfo) -> Array | None:
    """Read the header of an array of a usual type and shape; return ``None`` for every other."""
    found = _PLAIN_HEAD.match(head)
    if found is None or int.from_bytes(head[8:10], "little") != found.end() - 10:
        return None
    kind, size, length = found[1].decode(), int(found[2]), found[3]
    if kind in "iu" and size not in (1, 2, 4, 8):
        return None
    type_name = {"i": f"int{8 * size}", "u": f"uint{8 * size}", "S": f"|S{size}", "U": f"<U{size}"}[kind]
    shape = () if length is None else (int(length),)
    itemsize = 4 * size if kind == "U" else size
    return Array(name, shape, kind, itemsize, type_name, member, start=found.end())


def _any_head(head: bytes, name: str, member: zipfile.ZipInfo) -> Array:
    """Read any header of an array with NumPy, or raise what NumPy raises."""
    # The import takes longer than the replay of a small trace, and recorders write the usual kinds.
    from numpy.lib import format as npy

    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    file = io.BytesIO(head)
    version = npy.read_magic(file)
    if version not in readers:
        raise ValueError(f"npy format {version[0]}.{version[1]} is not known")
    with warnings.catch_warnings():
        # NumPy warns about files written by Python 2, although it reads them.
        warnings.simplefilter("ignore")
        shape, _, dtype = readers[version](file)
    return Array(
        name,
        shape,
        "O" if dtype.hasobject else dtype.kind,
        dtype.itemsize,
        str(dtype),
        member,
        start=file.tell(),
        big_endian=dtype.str.startswith(">"),
    )
