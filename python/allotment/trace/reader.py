"""Reads recorded allocations from a trace file and reports what is invalid in it."""

import json
import os
import stat
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from allotment._core import Program
from allotment.text import one_line
from allotment.trace.archive import MAGICS, Archive, Array
from allotment.trace.error import TraceError

#: Most events that a trace may have. A zip file of a few megabytes can decompress to columns larger than any
#: memory; the longest known recordings have a hundredth of this.
MAX_EVENTS = 100_000_000

#: Most bytes that the column ``header`` may have.
MAX_HEADER_BYTES = 16 << 20

_COLUMNS = ("op", "id", "size")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a trace file: three arrays of int64, each with one number per event."""

    #: The file's path as the caller gave it.
    path: str
    #: The program's name from the header; ``None`` without one.
    name: str | None
    #: 1 for an allocation, 2 for a free.
    op: NDArray[np.int64]
    #: The recorded block's number; a free has that of its allocation.
    id: NDArray[np.int64]
    #: Bytes requested.
    size: NDArray[np.int64]

    def program(self, events: int | None = None) -> Program:
        """Check the events and return them as a program to replay.

        Args:
            events: Number of events to take from the start; all by default.

        Raises:
            TraceError: The events are inconsistent, such as a free of a block that was never allocated.
        """
        try:
            return Program(*(column[:events].data for column in (self.op, self.id, self.size)))
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
    if array.shape != () or array.dtype.kind not in "US" or array.nbytes > MAX_HEADER_BYTES:
        raise archive.fault(f"column header: must be one text, is {_describe(array)}")
    numbers = archive.read(array)
    try:
        header = json.loads(numbers.item())
    except (ValueError, RecursionError) as error:
        raise archive.fault(f"column header: is not JSON: {error}") from error
    name = header.get("name") if isinstance(header, dict) else header
    if not (name is None or isinstance(name, str)) or not isinstance(header, dict):
        raise archive.fault("column header: must be a JSON object whose name is a text")
    return name


def _columns(archive: Archive) -> list[NDArray[np.int64]]:
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
    if len(array.shape) != 1 or array.dtype.kind not in "iu":
        raise archive.fault(f"column {name}: must be whole numbers in one dimension, is {_describe(array)}")
    return array


def _describe(array: Array) -> str:
    return f"{array.dtype} of shape {array.shape}"


def _numbers(archive: Archive, array: Array) -> NDArray[np.int64]:
    numbers: NDArray[Any] = archive.read(array)
    if numbers.dtype.kind == "u" and numbers.dtype.itemsize == 8:
        too_large = numbers > np.uint64(np.iinfo(np.int64).max)
        if too_large.any():
            event = int(too_large.argmax())
            place = f"column {array.name}: event {event}"
            raise archive.fault(f"{place}: {numbers[event]} is more than 64 bits with sign can hold")
    return np.ascontiguousarray(numbers, dtype=np.int64)
