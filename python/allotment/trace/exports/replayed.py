"""A replayed program as arrays: what the formats are written from."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from allotment._core import format_size, replay
from allotment.trace.exports.frames import Frame, frames_of
from allotment.trace.recording import Columns
from allotment.trace.report import ReplayOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Output(Protocol):
    """The file that a format is written to, which may compress it."""

    def write(self, content: bytes, /) -> object:
        """Write the content."""


class ReplayedProgram:
    """A trace and its replay. Arrays have one entry an event, shape (events,)."""

    #: 1 for an allocation, 2 for a free.
    op: "NDArray[np.int64]"
    #: Bytes requested.
    size: "NDArray[np.int64]"
    #: Bytes that the event adds to the live ones: 0 for a refusal, and for the free of a refused block.
    change: "NDArray[np.int64]"
    #: Bytes live after the event.
    live: "NDArray[np.int64]"
    #: The allocation of a free; the free of an allocation, or -1 if there is none.
    partner: "NDArray[np.int64]"
    #: The group that the event's block belongs to, an index of :attr:`groups`.
    group: "NDArray[np.int64]"

    def __init__(self, columns: Columns, options: ReplayOptions) -> None:
        # The import takes longer than the replay of a small trace.
        import numpy as np

        self.columns = columns
        self.options = options
        program = columns.program()
        self.offsets = np.empty(program.events, np.int64)
        self.result = replay(program, **asdict(options), offsets=self.offsets.data)
        self.op, self.size = np.asarray(columns.op), np.asarray(columns.size)
        signed = np.where(self.op == 1, self.size, -self.size)
        self.change = np.where(self.offsets >= 0, signed, 0)
        self.live = np.cumsum(self.change)
        self.partner = _partners(self.op, np.asarray(columns.id))
        self.group, self.groups = self._groups()

    @property
    def title(self) -> str:
        """The program's name, or the file's, and the device if the file has several."""
        name = self.columns.name or self.columns.path
        device = self.columns.origin.device
        return name if device is None else f"{name} ({device})"

    @property
    def events(self) -> int:
        """Number of events."""
        return len(self.op)

    @property
    def has_times(self) -> bool:
        """Whether the trace says when its events were."""
        return self.columns.t_ns is not None

    @cached_property
    def peak_event(self) -> int:
        """The first event after which the most bytes are live; -1 if none ever is."""
        return int(self.live.argmax()) if self.events and self.live.max() > 0 else -1

    def times(self, nanoseconds: int) -> "NDArray[np.int64]":
        """Return when each event was, in units of so many nanoseconds since the first event; never falling.

        Without times in the trace, an event takes one unit.
        """
        import numpy as np

        if self.columns.t_ns is None:
            return np.arange(self.events)
        times = np.maximum.accumulate(np.maximum(np.asarray(self.columns.t_ns), 0))
        return np.asarray((times - times[:1]) // nanoseconds)

    def frames(self, group: int) -> list[Frame]:
        """Return the stack of a group, the innermost frame first; a group by size is one frame of its own."""
        return frames_of(self.groups[group])

    def allocations(self) -> "NDArray[np.int64]":
        """Return the events that allocate at least one byte."""
        import numpy as np

        return np.flatnonzero(self.change > 0)

    def lives(self, event: int) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        """Return the bytes and the blocks of each group that are live after an event, -1 for the start."""
        import numpy as np

        size, count = np.zeros((2, len(self.groups)), np.int64)
        change, group = self.change[: event + 1], self.group[: event + 1]
        np.add.at(size, group, change)
        np.add.at(count, group, np.sign(change))
        return size, count

    def _groups(self) -> "tuple[NDArray[np.int64], list[str]]":
        """Return the group of each event, and the texts of all groups: owners, else sizes."""
        import numpy as np

        if self.columns.owner is not None:
            # A free belongs to where its allocation does.
            first = np.where(self.op == 1, np.arange(self.events), self.partner)
            owner = np.asarray(self.columns.owner)[first]
            return np.where(owner < 0, len(self.columns.owners), owner), [
                *map(self.columns.owners.__getitem__, range(len(self.columns.owners))),
                "owner not known",
            ]
        sizes, place = np.unique(self.size, return_inverse=True)
        numbers: dict[str, int] = {}
        # Sizes that read the same are one group.
        group = [
            numbers.setdefault(f"blocks of {format_size(size)}", len(numbers)) for size in sizes.tolist()
        ]
        return np.array(group, np.int64)[place], list(numbers)


def _partners(op: "NDArray[np.int64]", ids: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return the other event of each event's block: a free comes next after its allocation among those of its id."""
    import numpy as np

    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    frees = np.flatnonzero((ordered[1:] == ordered[:-1]) & (op[order[1:]] == 2)) + 1
    partner = np.full(len(op), -1, np.int64)
    partner[order[frees]] = order[frees - 1]
    partner[order[frees - 1]] = order[frees]
    return partner


def pieces(parts: Iterator[bytes], nbytes: int = 1 << 18) -> Iterator[bytes]:
    """Join small parts into pieces of about so many bytes, for a file that packs what is written to it."""
    held, length = list[bytes](), 0
    for part in parts:
        held.append(part)
        length += len(part)
        if length >= nbytes:
            yield b"".join(held)
            held.clear()
            length = 0
    yield b"".join(held)
