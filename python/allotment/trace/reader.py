"""Reads recorded programs from trace files. The content determines the format, not the file's name."""

import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

from allotment._core import Program
from allotment.trace.error import TraceError
from allotment.trace.formats.archive import MAGICS
from allotment.trace.recording import Columns, Origin, fault

#: Most bytes of a file that is not an ``.npz``, unpacked. A file of gzip may unpack to a thousand times its length.
MAX_BYTES = 8 << 30

_GZIP = b"\x1f\x8b"

#: Bytes that tell the kind of a file.
_BEGINNING_BYTES = 4096

#: First bytes of a pickle of protocol 2 to 5.
_PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))

_KINDS = (
    "an .npz file (a zip file of NumPy arrays), a memory snapshot of PyTorch (a pickle), a table of lifetimes or RMM's "
    "log (CSV), or a profile of TensorFlow (*.xplane.pb, *.trace.json.gz)"
)


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded program whose events were checked, with its file."""

    #: The file's path as the caller gave it.
    path: str
    #: The program's name from the header; ``None`` without one.
    name: str | None
    program: Program
    #: Facts in the file besides the events.
    origin: Origin = field(default=Origin("npz"))
    #: The stream of each event, numbered from 0 on; ``None`` if the file has no streams.
    stream: "memoryview[int] | None" = None

    @property
    def title(self) -> str:
        """The path, and the device if the file has several."""
        device = self.origin.device
        return self.path if device is None else f"{self.path} ({device})"


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace file with one program and check its events. See :func:`read_traces`.

    Raises:
        TraceError: The file cannot be read, is not a trace, has inconsistent events, or has several programs.
    """
    return checked(read_columns(path))


def read_traces(path: str | os.PathLike[str]) -> list[Trace]:
    """Read all programs of a trace file and check their events.

    The content determines the format, which :func:`read_columns` describes. Snapshots of PyTorch have a program for
    each device, profiles of TensorFlow one for each allocator; all other files have one program.

    Raises:
        TraceError: The file cannot be read, is not a trace, or has inconsistent events.
    """
    return [checked(columns) for columns in read_all_columns(path)]


def read_columns(path: str | os.PathLike[str], *, details: bool = False) -> Columns:
    """Read the columns of a trace file with one program, without checking its events.

    The formats, all of which may be packed by gzip but the first:

    - ``.npz`` with columns ``op`` (1 allocates, 2 frees), ``id`` and ``size``, one integer per event, and an optional
      ``header``, a JSON text. Other columns are ignored, but for ``t_ns`` and ``thread`` if ``details`` is set.
    - a memory snapshot of PyTorch: ``torch.cuda.memory._dump_snapshot``.
    - a table of lifetimes: comma-separated columns ``id``, ``lower``, ``upper`` and ``size``, as MiniMalloc reads.
    - the log of RMM's logging resource adaptor.
    - a profile of TensorFlow with memory events.

    Nothing in a file is executed; pickled objects are never made.

    Args:
        path: The file.
        details: Whether to read the times and threads of an ``.npz``, if it has them. Other kinds of files have theirs
            in any case.

    Raises:
        TraceError: The file cannot be read, is not a trace, or has several programs.
    """
    columns = read_all_columns(path, details=details)
    if len(columns) > 1:
        devices = ", ".join(one.origin.device or "" for one in columns)
        raise fault(os.fspath(path), f"has {len(columns)} programs, of {devices}: read_traces reads them all")
    return columns[0]


def read_all_columns(path: str | os.PathLike[str], *, details: bool = False) -> list[Columns]:
    """Read the columns of all programs of a trace file, without checking their events. See :func:`read_columns`.

    Raises:
        TraceError: The file cannot be read, or is not a trace.
    """
    path = os.fspath(path)
    with open_file(path) as file:
        start = file.read(4)
        if not start:
            raise fault(path, "is empty")
        if start in MAGICS:
            from allotment.trace.formats.npz import read_npz

            return read_npz(path, file, details=details)
        file.seek(0)
        content = _unpack(path, file) if start.startswith(_GZIP) else _read(path, file)
    return _reader(path, content)(path, content)


def is_trace(path: str) -> bool:
    """Return whether a file begins as a trace of any kind does; it may be damaged behind that.

    Raises:
        TraceError: The file cannot be read.
    """
    with open_file(path) as file:
        start = file.read(_BEGINNING_BYTES)
    if start.startswith(MAGICS):
        return True
    if start.startswith(_GZIP):
        try:
            start = zlib.decompressobj(wbits=31).decompress(start, _BEGINNING_BYTES)
        except zlib.error:
            return False
    try:
        # Any text may begin with a blank line, as a profile does.
        return bool(start) and not start.isspace() and _reader(path, start) is not None
    except TraceError:
        return False


def _reader(path: str, content: bytes) -> Callable[[str, bytes], list[Columns]]:
    """Return the function that reads this content. Each format is imported when it is met."""
    if content.startswith(b"allotment events "):
        return _read_journal
    if content.startswith(_PICKLES):
        from allotment.trace.formats.pytorch import read_snapshot

        return read_snapshot
    first_line = content[:_BEGINNING_BYTES].partition(b"\n")[0].decode("utf-8", "replace")
    if "," in first_line:
        from allotment.trace.formats.tables import is_table, read_table

        if is_table(first_line):
            return lambda path, content: read_table(path, _text(path, content))
    if content[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        from allotment.trace.formats.tensorflow import read_json

        return read_json
    if content.startswith(b"\n"):  # The tag of an XSpace's first plane.
        from allotment.trace.formats.tensorflow import read_xplane

        return read_xplane
    raise fault(path, f"is not a trace. A trace is {_KINDS}")


def _read_journal(path: str, content: bytes) -> list[Columns]:
    """Read a recording that was not ended."""
    from allotment.trace.journal import MAGIC, read_journal
    from allotment.trace.recorded import programs

    if not content.startswith(MAGIC):
        raise fault(path, "is a recording of another version")
    try:
        return programs(path, read_journal(content))
    except ValueError as error:
        raise fault(path, str(error)) from error


def checked(columns: Columns) -> Trace:
    """Check the events of columns and return them as a trace.

    Raises:
        TraceError: The events are inconsistent.
    """
    return Trace(columns.path, columns.name, columns.program(), columns.origin, columns.stream)


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fault(path, f"byte {error.start}: is not UTF-8") from error


def _read(path: str, file: IO[bytes]) -> bytes:
    if os.fstat(file.fileno()).st_size > MAX_BYTES:
        raise fault(path, f"has more than {MAX_BYTES} bytes, the most that are read")
    try:
        return file.read()
    except MemoryError as error:
        raise fault(path, "does not fit into memory") from error


def _unpack(path: str, file: IO[bytes]) -> bytes:
    """Unpack a file of gzip, which may have several members."""
    parts, length = [], 0
    unpacker = zlib.decompressobj(wbits=31)
    try:
        while packed := file.read(1 << 20):
            while packed:
                if unpacker.eof:
                    if not packed.strip(b"\0"):
                        break  # Padding, as tapes need it.
                    unpacker = zlib.decompressobj(wbits=31)
                parts.append(unpacker.decompress(packed))
                packed = unpacker.unused_data
                length += len(parts[-1])
                if length > MAX_BYTES:
                    raise fault(path, f"unpacks to more than {MAX_BYTES} bytes, the most that are read")
    except zlib.error as error:
        raise fault(path, f"is a damaged gzip file: {error}") from error
    except MemoryError as error:
        raise fault(path, "does not fit into memory") from error
    if not unpacker.eof:
        raise fault(path, f"is a truncated gzip file: it ends after {length} bytes")
    return b"".join(parts)


def _unreadable(path: str, error: OSError | ValueError) -> TraceError:
    reason = error.strerror if isinstance(error, OSError) else None
    return fault(path, f"cannot be read: {reason or error}")


@contextmanager
def open_file(path: str) -> Iterator[IO[bytes]]:
    """Open a regular file for reading, in a ``with`` block.

    Raises:
        TraceError: It cannot be opened, is no regular file, or a read in the block fails.
    """
    try:
        # Non-blocking: opening a named pipe without a writer would hang.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    file = os.fdopen(descriptor, "rb") if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    if file is None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        os.close(descriptor)
        raise fault(path, "is a folder" if is_folder else "is not a regular file")
    with file:
        try:
            yield file
        except OSError as error:
            # Files of /proc, and those of devices and servers that fail, can be opened all the same.
            raise _unreadable(path, error) from error
