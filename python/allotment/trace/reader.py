"""Reads recorded allocations from a trace file and reports what is invalid in it."""

import json
import os
import re
import stat
import sys
from dataclasses import dataclass
from typing import IO

from allotment._core import Program, one_line
from allotment.trace.archive import MAGICS, Archive, Array
from allotment.trace.error import TraceError

#: Most events that a trace may have. A zip file of a few megabytes can decompress to columns larger than any
#: memory; the longest known recordings have a hundredth of this.
MAX_EVENTS = 100_000_000

#: Most bytes that the column ``header`` may have.
MAX_HEADER_BYTES = 16 << 20

_COLUMNS = ("op", "id", "size")

#: For each most significant byte of a number with sign, the bytes that precede it in a longer number.
_SIGN_BYTES = bytes(128) + b"\xff" * 128


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a trace file: three buffers of 64-bit signed integers, each with one number per event."""

    #: The file's path as the caller gave it.
    path: str
    #: The program's name from the header; ``None`` without one.
    name: str | None
    #: 1 for an allocation, 2 for a free.
    op: "memoryview[int]"
    #: The recorded block's number; a free has that of its allocation.
    id: "memoryview[int]"
    #: Bytes requested.
    size: "memoryview[int]"

    def program(self, events: int | None = None) -> Program:
        """Check the events and return them as a program to replay.

        Args:
            events: Number of events to take from the start; all by default.

        Raises:
            TraceError: The events are inconsistent, such as a free of a block that was never allocated.
        """
        try:
            return Program(self.op[:events], self.id[:events], self.size[:events])
        except MemoryError as error:
            raise _fault(self.path, f"its {len(self.op)} events do not fit into memory") from error
        except ValueError as error:
            raise _fault(self.path, str(error)) from error


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded program whose events were checked, with its file."""

    #: The file's path as the caller gave it.
    path: str
    #: The program's name from the header; ``None`` without one.
    name: str | None
    program: Program


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace file and check its events. See :func:`read_columns` for the format.

    Raises:
        TraceError: The file cannot be read, is not a trace, or has inconsistent events.
    """
    columns = read_columns(path)
    return Trace(columns.path, columns.name, columns.program())


def read_columns(path: str | os.PathLike[str]) -> Columns:
    """Read the columns of a trace file, without checking its events.

    The content determines the format, not the file's name. There is one format: ``.npz`` with columns ``op``
    (1 allocates, 2 frees), ``id`` and ``size``, one integer per event, and an optional ``header``, a JSON text.
    Other columns are ignored. Pickled objects are never loaded.

    Raises:
        TraceError: The file cannot be read, or lacks these columns.
    """
    path = os.fspath(path)
    with _open(path) as file:
        start = file.read(4)
        if not start:
            raise _fault(path, "is empty")
        if start not in MAGICS:
            raise _fault(path, "is not a trace: a trace is an .npz file (a zip file of NumPy arrays)")
        with Archive(path, file) as archive:
            return Columns(path, _name(archive), *_columns(archive))


def _fault(path: str, problem: str) -> TraceError:
    return TraceError(one_line(f"{path}: {problem}"))


def _open(path: str) -> IO[bytes]:
    try:
        # Non-blocking: opening a named pipe without a writer would hang.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise _fault(path, f"cannot be read: {reason}") from error
    file = os.fdopen(descriptor, "rb") if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    if file is None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        os.close(descriptor)
        raise _fault(path, "is a folder" if is_folder else "is not a regular file")
    return file


def _name(archive: Archive) -> str | None:
    """Return the name in the header; ``None`` without a header or name. An invalid header is a ``TraceError``."""
    array = archive.describe("header")
    if array is None:
        return None
    if array.shape != () or array.kind not in "US" or array.nbytes > MAX_HEADER_BYTES:
        raise archive.fault(f"column header: must be one text, is {_describe(array)}")
    content = archive.read(array)
    try:
        # NumPy pads texts with zeros.
        if array.kind == "U":
            codec = "utf-32-be" if array.big_endian else "utf-32-le"
            header = json.loads(str(content, codec, "surrogatepass").rstrip("\0"))
        else:
            header = json.loads(content.rstrip(b"\0"))
    except (ValueError, RecursionError) as error:
        raise archive.fault(f"column header: is not JSON: {error}") from error
    name = header.get("name") if isinstance(header, dict) else header
    if not (name is None or isinstance(name, str)) or not isinstance(header, dict):
        raise archive.fault("column header: must be a JSON object whose name is a text")
    return name


def _columns(archive: Archive) -> "list[memoryview[int]]":
    arrays = [_describe_column(archive, name) for name in _COLUMNS]
    # The headers of all columns are read before any numbers, so that a column that is too long takes no memory.
    if len({array.shape for array in arrays}) > 1:
        lengths = ", ".join(f"{array.name} has {array.shape[0]}" for array in arrays)
        raise archive.fault(f"the columns differ in length: {lengths}")
    if arrays[0].shape[0] > MAX_EVENTS:
        raise archive.fault(f"has {arrays[0].shape[0]} events; at most {MAX_EVENTS} are read")
    return [_numbers(archive, array) for array in arrays]


def _describe_column(archive: Archive, name: str) -> Array:
    array = archive.describe(name)
    if array is None:
        raise archive.fault(f"column {name}: is missing; a trace has {', '.join(_COLUMNS)}")
    if len(array.shape) != 1 or array.kind not in "iu":
        raise archive.fault(f"column {name}: must be whole numbers in one dimension, is {_describe(array)}")
    return array


def _describe(array: Array) -> str:
    return f"{array.type_name} of shape {array.shape}"


def _numbers(archive: Archive, array: Array) -> "memoryview[int]":
    """Read whole numbers of any length and byte order as 64-bit signed integers, without NumPy."""
    data, width = archive.read(array), array.itemsize
    if array.kind == "i" and width == 8 and array.big_endian == (sys.byteorder == "big"):
        return memoryview(data).cast("q")
    # One sequence for each byte of a number, the least significant first.
    parts = [data[place::width] for place in range(width)]
    if array.big_endian:
        parts.reverse()
    if array.kind == "i":
        parts += [parts[-1].translate(_SIGN_BYTES)] * (8 - width)
    elif width == 8 and (large := re.search(rb"[\x80-\xff]", parts[-1])) is not None:
        event = large.start()
        number = int.from_bytes(bytes(part[event] for part in parts), "little")
        place = f"column {array.name}: event {event}"
        raise archive.fault(f"{place}: {number} is more than 64 bits with sign can hold")
    numbers = bytearray(8 * array.shape[0])
    places = range(8) if sys.byteorder == "little" else range(7, -1, -1)
    for start, part in zip(places, parts, strict=False):
        numbers[start::8] = part
    return memoryview(numbers).cast("q")
