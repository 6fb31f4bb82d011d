"""Reads a recorded program from a file, and says what is wrong with one that is none."""

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

#: Events of the longest trace that is read. A zip file of a few megabytes can hold columns that fill any
#: memory; the longest recordings we know have a hundredth of this.
MAX_EVENTS = 100_000_000

#: Bytes of the longest header that is read.
MAX_HEADER_BYTES = 16 << 20

_COLUMNS = ("op", "id", "size")


@dataclass(frozen=True, slots=True)
class Columns:
    """A trace as its file has it: one number an event in each column, as 64-bit integers."""

    #: As it was given.
    path: str
    #: From the header, if there is one and it has a name.
    name: str | None
    #: 1 allocates, 2 frees.
    op: NDArray[np.int64]
    #: Names the block.
    id: NDArray[np.int64]
    #: Bytes requested.
    size: NDArray[np.int64]

    def program(self, events: int | None = None) -> Program:
        """Make the program of it, or of its first ``events`` events.

        Raises:
            TraceError: It makes no sense, such as a free of what was never allocated.
        """
        try:
            return Program(*(column[:events].data for column in (self.op, self.id, self.size)))
        except MemoryError as error:
            raise _fault(self.path, f"its {len(self.op)} events do not fit into memory") from error
        except ValueError as error:
            raise _fault(self.path, str(error)) from error


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded program that makes sense, and where it came from."""

    #: As it was given.
    path: str
    #: From the header, if there is one and it has a name.
    name: str | None
    program: Program


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace and check that it makes sense.

    Raises:
        TraceError: The file cannot be read, or is no trace that makes sense.
    """
    columns = read_columns(path)
    return Trace(columns.path, columns.name, columns.program())


def read_columns(path: str | os.PathLike[str]) -> Columns:
    """Read the columns of a trace; what kind of file it is, is told from its content.

    One kind is known: ``.npz`` with columns ``op`` (1 allocates, 2 frees), ``id`` and ``size``, one integer
    an event, and an optional ``header``, a JSON text. Other columns are ignored. Nothing is ever unpickled.

    Raises:
        TraceError: The file cannot be read, or has no such columns.
    """
    path = os.fspath(path)
    with _open(path) as file:
        start = file.read(4)
        if not start:
            raise _fault(path, "is empty")
        if start not in MAGICS:
            raise _fault(path, "is no trace: a trace is an .npz file (a zip file of NumPy arrays)")
        with Archive(path, file) as archive:
            return Columns(path, _name(archive), *_columns(archive))


def _fault(path: str, what: str) -> TraceError:
    return TraceError(one_line(f"{path}: {what}"))


def _open(path: str) -> IO[bytes]:
    try:
        # Without waiting: opening a named pipe that nobody writes to would hang.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        raise _fault(path, f"cannot be read: {what}") from error
    file = os.fdopen(descriptor, "rb") if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    if file is None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        os.close(descriptor)
        raise _fault(path, "is a folder" if is_folder else "is not a regular file")
    return file


def _name(archive: Archive) -> str | None:
    """Read the name in the header. A header that is there must be readable."""
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
    # All of them are described before any is read: a column that is too long costs no memory.
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
