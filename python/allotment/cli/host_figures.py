"""What the library that was loaded into a program counted: a file for each process, and the summary of all."""

import os
import struct
from dataclasses import dataclass
from typing import Final

from allotment._core import format_size, one_line

# As `rust/preload/src/statistics.rs` writes them.
_MAGIC: Final = b"allotment host 1"
_LAYOUT: Final = struct.Struct("=16s16s7Q")

#: What stands for a request of more bytes than 64 bits can say.
_MOST: Final = (1 << 64) - 1

#: Processes that the summary names.
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """Figures of one process. All sizes are in bytes."""

    name: str
    pid: int
    #: The large blocks that were in use at the end, and the most at any time.
    live: int
    peak_live: int
    #: Number of large blocks that were ever allocated.
    blocks: int
    #: Number of requests that were refused, and the size of the first one.
    refused: int
    first_refused: int
    #: The most memory of pages, free ones included.
    peak_committed: int
    #: Number of events that are not in the record, as its file could not be made or written any further.
    unrecorded: int

    def sentence(self, limit: int | None) -> str:
        """Return the figures as text without a full stop."""
        of = "" if limit is None else f" of {format_size(limit)}"
        most = f"at most {format_size(self.peak_live)}{of} at a time"
        text = f"{self.name} ({self.pid}): {most}, {_blocks(self.blocks)} in all"
        if not self.refused:
            return text
        first = format_size(self.first_refused)
        if self.first_refused == _MOST:
            first = f"{_MOST} bytes or more"
        if self.refused == 1:
            return f"{text}; a request of {first} was refused"
        return f"{text}; {self.refused} requests were refused, the first of {first}"


def _blocks(number: int) -> str:
    return "1 large block" if number == 1 else f"{number} large blocks"


def was_loaded(folder: str, pid: int) -> bool:
    """Return whether the library was loaded into a process that the command started."""
    return os.path.exists(os.path.join(folder, f"loaded.{pid}"))


def read_figures(folder: str) -> list[ProcessFigures]:
    """Return the figures of all processes that had large blocks, those with the highest peak first."""
    found = []
    for name in os.listdir(folder):
        pid = name.partition(".")[0]
        if not pid.isdigit():
            continue
        with open(os.path.join(folder, name), "rb") as file:
            content = file.read(_LAYOUT.size)
        # A process that was killed while it made its file has none.
        if len(content) == _LAYOUT.size and content.startswith(_MAGIC):
            _, program, *figures = _LAYOUT.unpack(content)
            text = one_line(program.rstrip(b"\0").decode(errors="replace"))
            found.append(ProcessFigures(text, int(pid), *figures))
    return sorted(found, key=lambda one: (-one.refused, -one.peak_live, one.pid))


def summary(found: list[ProcessFigures], limit: int | None, threshold: int) -> list[str]:
    """Return lines that sum up what the processes had."""
    if not found:
        return [f"no process had a block of {format_size(threshold)} or more"]
    lines = [one.sentence(limit) for one in found[:_MOST_NAMED]]
    others = found[_MOST_NAMED:]
    if others:
        most = format_size(max(one.peak_live for one in others))
        refused = sum(one.refused for one in others)
        text = f"other processes ({len(others)}): at most {most} each"
        said = "1 request was refused" if refused == 1 else f"{refused} requests were refused"
        lines.append(f"{text}; {said}" if refused else text)
    return lines
