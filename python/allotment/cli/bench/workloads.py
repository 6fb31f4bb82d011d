"""The programs that ``bench`` plays: events made from a seed, so that each run has the same ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from allotment._core import Program, format_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Events that are measured in each round. So short a round is seldom interrupted by another process, which would
#: count for the contender that is on; its time is still ten thousand times that of reading the clock.
EVENTS = 20_000

KIB = 1 << 10
MIB = 1 << 20

#: Live blocks of churn, and holes among which pairs are.
LIVE = 2_048
LIVE_OF_THREAD = 256
HOLES = 16_384

_SEED = 20


@dataclass(frozen=True, slots=True)
class Played:
    """A program to measure."""

    name: str
    program: Program
    #: Number of events at the start that are not measured.
    setup: int = 0
    #: Number of threads that play it at once.
    threads: int = 1

    @property
    def measured(self) -> int:
        """Number of events of one thread that are measured."""
        return self.program.events - self.setup


def pairs() -> Iterator[Played]:
    """Allocate and free at once, with nothing else live."""
    for low, high in ((KIB, KIB), (256, 16 * KIB), (MIB, MIB)):
        yield _played(f"pairs of {_range(low, high)}", _pairs(low, high))


def holes() -> Iterator[Played]:
    """Allocate and free at once, among free memory in pieces of many sizes."""
    size = _sizes(256, 16 * KIB, 2 * HOLES)
    before = [(1, block, size[block]) for block in range(2 * HOLES)]
    before += [(2, block, size[block]) for block in range(0, 2 * HOLES, 2)]
    for low, high in ((KIB, KIB), (256, 16 * KIB)):
        events = before + _pairs(low, high, first=2 * HOLES)
        yield _played(f"pairs of {_range(low, high)} among {HOLES:,} holes", events, setup=len(before))


def churn() -> Iterator[Played]:
    """Free a random block and allocate another one, with so many live."""
    for high in (16 * KIB, MIB):
        events, setup = _churn(256, high, LIVE)
        yield _played(f"churn of {LIVE:,} live, {_range(256, high)}", events, setup)


def threads(most: int) -> Iterator[Played]:
    """Play pairs and churn on several threads, which share the allocator."""
    counts = sorted({2, most}) if most > 1 else []
    for count in counts:
        yield _played(f"{count} threads, pairs of 1 KiB", _pairs(KIB, KIB), threads=count)
        events, setup = _churn(256, 16 * KIB, LIVE_OF_THREAD)
        name = f"{count} threads, churn of {LIVE_OF_THREAD} live, {_range(256, 16 * KIB)}"
        yield _played(name, events, setup, count)


Events = list[tuple[int, int, int]]


def _played(name: str, events: Events, setup: int = 0, threads: int = 1) -> Played:
    # The import takes longer than that of the command line.
    import numpy as np

    op, block, size = np.array(events, np.int64).T.copy()
    return Played(name, Program(op.data, block.data, size.data), setup, threads)


def _pairs(low: int, high: int, first: int = 0) -> Events:
    events: Events = []
    for number, size in enumerate(_sizes(low, high, EVENTS // 2), first):
        events += [(1, number, size), (2, number, size)]
    return events


def _churn(low: int, high: int, live: int) -> tuple[Events, int]:
    """Return events, and the number of those that make the live blocks."""
    import numpy as np

    size = _sizes(low, high, live + EVENTS // 2)
    places = np.random.default_rng(_SEED).integers(0, live, EVENTS // 2).tolist()
    held = list(range(live))
    events: Events = [(1, block, size[block]) for block in held]
    for block, place in enumerate(places, live):
        events += [(2, held[place], size[held[place]]), (1, block, size[block])]
        held[place] = block
    return events, live


def _sizes(low: int, high: int, count: int) -> list[int]:
    """Return sizes, each power of two between the limits as often as any other."""
    import numpy as np

    exponents: NDArray[np.float64] = np.random.default_rng(_SEED).uniform(np.log2(low), np.log2(high), count)
    return [round(size) for size in np.exp2(exponents).tolist()]


def _range(low: int, high: int) -> str:
    return format_size(low) if low == high else f"{format_size(low)} to {format_size(high)}"
