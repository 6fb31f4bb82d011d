"""Writes replayed traces as files that other programs' viewers open: one module for each format."""

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Final, Protocol

from allotment.trace.exports.replayed import Output, ReplayedProgram
from allotment.trace.files import replace_file
from allotment.trace.recording import Columns
from allotment.trace.report import ReplayOptions


@dataclass(frozen=True, slots=True)
class _Format:
    """A format, as it is known before its module is loaded."""

    #: Whether a file can have several programs.
    several: bool = False
    #: Whether files are always packed by gzip.
    packed: bool = False


#: Formats by name, which is also that of the module.
_FORMATS: Final = {
    "pytorch": _Format(several=True),
    "heaptrack": _Format(),
    "dhat": _Format(),
    "massif": _Format(),
    "pprof": _Format(packed=True),
    "chrome": _Format(several=True),
}

#: Names of the formats that :func:`export_trace` writes.
EXPORT_FORMATS: Final = tuple(_FORMATS)


class _Module(Protocol):
    """The module of a format."""

    write: Callable[[Output, Sequence[ReplayedProgram]], None]


def check_format(name: str) -> None:
    """Check that there is a format of this name.

    Raises:
        ValueError: There is none; the text lists the formats.
    """
    if name not in _FORMATS:
        raise ValueError(f"format {name!r} is not known: write one of {', '.join(EXPORT_FORMATS)}")


def export_trace(
    columns: Columns | Sequence[Columns],
    format: str,  # noqa: A002 - as in the command's option
    path: str | os.PathLike[str],
    options: ReplayOptions | None = None,
) -> None:
    """Replay a trace, and write the replay as a file of another program's format, atomically.

    Requests that the replay refuses are not in the file, but for ``"pytorch"`` and ``"chrome"``, which have a kind of
    event for them; blocks of no bytes are not, either. The peak of the file is the peak of bytes live in the replay.
    Stacks, owners, times, threads and streams are in the file as far as the trace has them and the format can say
    them. Without owners blocks are grouped by size, and without times an event takes one unit of the format's time.

    Args:
        columns: The trace, as :func:`read_columns` returns it, with ``details=True`` for the times and threads of an
            ``.npz``. ``"pytorch"`` and ``"chrome"`` take a list, too: one for each device.
        format: One of :data:`EXPORT_FORMATS`:

            - ``"pytorch"``: a memory snapshot of PyTorch, a pickle of protocol 4. A region of the pool is a segment.
            - ``"heaptrack"``: an uncompressed data file of heaptrack.
            - ``"dhat"``: the JSON of Valgrind's DHAT.
            - ``"massif"``: the output of Valgrind's Massif, with a snapshot at the peak and 99 others at most.
            - ``"pprof"``: a profile (``profile.proto``, always packed by gzip) with what was allocated, what is live at
              the peak, and what is live at the end.
            - ``"chrome"``: the trace events of Chromium and Perfetto, a JSON text.
        path: The file's exact name. An existing file is replaced. The file is packed by gzip if the name ends in
            ``.gz``.
        options: Options of the pool.

    Raises:
        ValueError: The format is not known, or cannot say what the options or the traces have.
        TraceError: The events are inconsistent.
        OSError: The file cannot be written. A file that was at ``path`` before is unchanged.
    """
    check_format(format)
    programs = [columns] if isinstance(columns, Columns) else list(columns)
    path, options = os.fspath(path), options or ReplayOptions()
    if len(programs) != 1 and not (_FORMATS[format].several and programs):
        raise ValueError(f"format {format!r} is of one program, not of {len(programs)}")
    module: _Module = importlib.import_module(f"{__name__}.{format}")
    replayed = [ReplayedProgram(one, options) for one in programs]

    def write(file: IO[bytes]) -> None:
        if not (_FORMATS[format].packed or path.endswith(".gz")):
            module.write(file, replayed)
            return
        # Not at the start of each replay.
        import gzip

        # Without a time the same trace gives the same bytes.
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
            module.write(packed, replayed)

    replace_file(path, write)
