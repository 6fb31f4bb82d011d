"""Recordings of large host blocks: journals that the library writes which is loaded into a program."""

import glob
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from allotment.trace.files import replace_file
from allotment.trace.journal import MAGIC, Events, is_running, read_journal
from allotment.trace.writer import write_events

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: How the library names its pool: the program and the number of the process.
_POOL = re.compile(r".*\((\d+)\)")

#: The suffix of a file's name, for all processes and programs but the first.
_SUFFIX = re.compile(r"\.\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class HostJournal:
    """The journal of one process."""

    path: str
    pid: int
    events: Events

    @property
    def is_running(self) -> bool:
        """Whether the process is still there, and may go on writing."""
        return is_running(self.pid)


def host_files(path: str) -> list[str]:
    """Return the names at which recordings of a program may be, and something is.

    They are ``path``, and ``path.PID``, ``path.PID.2``, ``path.PID.3``, ... for its other processes, and for the second
    and later programs that a process runs one after the other (``exec``).
    """
    others = sorted(glob.glob(f"{glob.escape(path)}.*"))
    names = [path, *(name for name in others if _SUFFIX.fullmatch(name[len(path) :]))]
    return [name for name in names if os.path.lexists(name)]


def host_journals(path: str, earlier: Collection[str] = ()) -> list[HostJournal]:
    """Return the journals of a program that have events, in the order of their first ones.

    Args:
        path: The name that the program was given.
        earlier: What :func:`host_files` returned before the program ran. The library writes to none of these files.

    Raises:
        OSError: A file cannot be read.
        ValueError: A file is damaged.
    """
    found = []
    for name in host_files(path):
        if name in earlier:
            continue
        with open(name, "rb") as file:
            content = file.read()
        if content.startswith(MAGIC):
            events = read_journal(content)
            pool = _POOL.fullmatch(next(iter(events.pools.values()), ""))
            # The file of a process that was killed while it made it may have neither.
            if pool and len(events.rows):
                found.append(HostJournal(name, int(pool[1]), events))
    return sorted(found, key=lambda journal: int(journal.events.rows["t_ns"][0]))


def finish(journal: HostJournal, path: str | None = None) -> None:
    """Make the journal of a process that has ended an ``.npz``, atomically.

    Args:
        journal: The journal.
        path: Where the ``.npz`` goes; None replaces the journal. A file that is there is replaced.

    Raises:
        OSError: The file cannot be written. The journal is unchanged then, and so is the file that was at ``path``.
    """
    write_events(path or journal.path, journal.events)
    if path is not None and path != journal.path:
        os.unlink(journal.path)


def write_host_timeline(path: str, journals: list[HostJournal]) -> None:
    """Write the bytes of large blocks over time as a table, atomically: ``t_ns,pid,live,refused``.

    A line for each event of each process, in the order of time: nanoseconds since the start of the program, number of
    the process, bytes of its large blocks after the event, and the bytes of a request that was refused, else 0.

    Raises:
        OSError: The file cannot be written. A file that was at ``path`` before is unchanged.
    """
    import numpy as np

    parts = [_lines(journal) for journal in journals]
    table = np.concatenate(parts) if parts else np.zeros((0, 4), np.int64)
    table = table[np.argsort(table[:, 0], kind="stable")]

    def write(file: IO[bytes]) -> None:
        file.write(b"t_ns,pid,live,refused\n")
        np.savetxt(file, table, fmt="%d", delimiter=",")

    replace_file(path, write)


def _lines(journal: HostJournal) -> "NDArray[np.int64]":
    import numpy as np

    rows = journal.events.rows
    sign = np.select([rows["op"] == 1, rows["op"] == 2], [1, -1], 0)
    live = np.cumsum(sign * rows["size"])
    refused = np.where(rows["op"] == 3, rows["size"], 0)
    return np.stack([rows["t_ns"], np.full(len(rows), journal.pid, np.int64), live, refused], axis=1)
