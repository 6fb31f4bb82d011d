"""What pictures of a replay show: curves, blocks by address, holders of the memory, sizes of requests."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from allotment._core import Picture, format_size, picture
from allotment.trace.error import TraceError
from allotment.trace.recording import Columns
from allotment.trace.report import ReplayOptions

#: Numbers in a row of :attr:`allotment._core.Picture.points` and of its blocks.
POINT_COLUMNS = 7
BLOCK_COLUMNS = 5


@dataclass(frozen=True, slots=True)
class Holder:
    """Blocks with one owner, or of one size where owners are not known."""

    name: str
    blocks: int
    #: Requested bytes of all of them.
    nbytes: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """A trace and the picture of its replay."""

    columns: Columns
    options: ReplayOptions
    picture: Picture
    #: The most bytes live in the recorded program, requests that the replay refuses included.
    peak_live: int

    @property
    def title(self) -> str:
        """The path, and the device if the file has several."""
        device = self.columns.origin.device
        return self.columns.path if device is None else f"{self.columns.path} ({device})"

    def is_owned(self, event: int) -> bool:
        """Return whether the trace says who made the allocation of an event."""
        return self.columns.owner is not None and self.columns.owner[event] >= 0

    def holder(self, event: int, requested: int) -> str:
        """Return the group that the allocation of an event counts to: its owner's text, or its size."""
        if self.columns.owner is None:
            return f"blocks of {format_size(requested)}"
        owner = self.columns.owner[event]
        return "owner not known" if owner < 0 else self.columns.owners[owner]

    def holders_at_peak(self) -> list[Holder]:
        """Return all groups of blocks at the peak of live bytes, the one of the most bytes first."""
        found: dict[str, Holder] = {}
        for start, _, _, _, requested in rows(self.picture.at_peak, BLOCK_COLUMNS):
            name = self.holder(start, requested)
            former = found.get(name, Holder(name, 0, 0))
            found[name] = Holder(name, former.blocks + 1, former.nbytes + requested)
        return sorted(found.values(), key=lambda one: (-one.nbytes, one.name))

    def size_classes(self) -> list[tuple[int, int, int]]:
        """Return the classes of requests that are shown: the largest size, number and bytes.

        Empty classes at both ends are left out.
        """
        sizes = self.picture.sizes
        used = [number for number, (count, _) in enumerate(sizes) if count]
        return [
            (1 << number, *sizes[number]) for number in range(min(used, default=0), max(used, default=-1) + 1)
        ]


def draw(
    columns: Columns,
    options: ReplayOptions | None = None,
    *,
    events: tuple[int, int | None] = (0, None),
    points: int = 16_384,
    blocks: int = 65_536,
) -> Drawing:
    """Replay a trace and keep what a picture of it shows.

    Args:
        columns: The trace, as :func:`read_columns` returns it.
        options: Options of the pool.
        events: The first event that is shown, and the first one behind them. All events before are replayed as well.
        points: The most points of the curves.
        blocks: The most blocks that are kept one by one: those of the largest area.

    Raises:
        TraceError: The events are inconsistent, or the trace ends before the first event that is shown.
    """
    options = options or ReplayOptions()
    program = columns.program()
    first, last = events
    if first and first >= program.events:
        raise TraceError(f"{columns.path}: has {program.events} events, so none from event {first} on")
    drawn = picture(program, **asdict(options), first=first, last=last, points=points, blocks=blocks)
    return Drawing(columns, options, drawn, program.peak_live)


def rows(packed: bytes, width: int) -> Iterator[tuple[int, ...]]:
    """Yield the rows of packed 64-bit integers."""
    numbers: Iterable[int] = memoryview(packed).cast("q")
    return zip(*[iter(numbers)] * width, strict=True)
