"""Reference implementation of best fit with coalescing, slow and simple, to compare replays with.

Written from the public description of TensorFlow's allocator, independently of the Rust core: one list of chunks in
address order, searched completely for each request.
"""

from collections.abc import Iterable
from dataclasses import dataclass

GRANULE = 256
FIRST_REGION = 2 * 1024 * 1024
KEEP_REMAINDERS_FROM = 128 * 1024 * 1024


@dataclass
class Piece:
    """A chunk of the reference allocator."""

    start: int
    size: int
    region: int
    used: bool = False


def whole_granules(nbytes: int) -> int:
    return -(-nbytes // GRANULE) * GRANULE


class BestFit:
    def __init__(self, limit: int, *, growth: bool = True, trim_on_oom: bool = False, gap: int = 0) -> None:
        self.limit = limit
        self.trim_on_oom = trim_on_oom
        self.gap = gap
        self.step = whole_granules(min(limit, FIRST_REGION) if growth else limit)
        self.chunks: list[Piece] = []
        self.next_address = 0
        self.grants = 0

    @property
    def reserved(self) -> int:
        return sum(chunk.size for chunk in self.chunks)

    @property
    def in_use(self) -> int:
        return sum(chunk.size for chunk in self.chunks if chunk.used)

    @property
    def regions(self) -> int:
        return len({chunk.region for chunk in self.chunks})

    def allocate(self, nbytes: int) -> int | None:
        """Return the offset, or None for a refusal."""
        needed = whole_granules(nbytes)
        offset = self._fit(needed)
        if offset is None and self._grow(needed):
            offset = self._fit(needed)
        if offset is None and self.trim_on_oom and self._trim(needed) and self._grow(needed):
            offset = self._fit(needed)
        return offset

    def free(self, offset: int) -> None:
        (index,) = [i for i, chunk in enumerate(self.chunks) if chunk.start == offset and chunk.used]
        self.chunks[index].used = False
        self._merge(index)

    def _fit(self, needed: int) -> int | None:
        fitting = [chunk for chunk in self.chunks if not chunk.used and chunk.size >= needed]
        if not fitting:
            return None
        best = min(fitting, key=lambda chunk: (chunk.size, chunk.start))
        rest = best.size - needed
        if best.size >= 2 * needed or rest >= KEEP_REMAINDERS_FROM:
            best.size = needed
            self.chunks.insert(self.chunks.index(best) + 1, Piece(best.start + needed, rest, best.region))
        best.used = True
        return best.start

    def _grow(self, needed: int) -> bool:
        room = (self.limit - self.reserved) // GRANULE * GRANULE
        if needed > room:
            return False
        doubled = needed > self.step
        while needed > self.step:
            self.step *= 2
        size = min(self.step, room)
        if not doubled:
            self.step *= 2
        region = self.grants
        last = self.chunks[-1] if self.chunks else None
        if self.gap == 0 and last is not None and last.start + last.size == self.next_address:
            region = last.region
        self.chunks.append(Piece(self.next_address, size, region))
        self.next_address += size + self.gap
        self.grants += 1
        self._merge(len(self.chunks) - 1)
        return True

    def _trim(self, needed: int) -> bool:
        busy = {chunk.region for chunk in self.chunks if chunk.used}
        total = sum(chunk.size for chunk in self.chunks if chunk.region not in busy)
        if total == 0 or needed > self.limit - self.reserved + total:
            return False
        self.chunks = [chunk for chunk in self.chunks if chunk.region in busy]
        return True

    def _merge(self, index: int) -> None:
        """Merge a free chunk with its free neighbours of the same region, the right one first."""
        for left in (index, index - 1):
            if left < 0 or left + 1 >= len(self.chunks):
                continue
            low, high = self.chunks[left], self.chunks[left + 1]
            if not low.used and not high.used and low.region == high.region:
                low.size += high.size
                del self.chunks[left + 1]


@dataclass
class Expected:
    """The expected figures of a replay's report."""

    offsets: list[int]
    refused: int
    first_refused: int | None
    peak_in_use: int
    peak_reserved: int
    regions: int
    grants: int


def replay(model: BestFit, events: Iterable[tuple[int, int, int]]) -> Expected:
    """Replay events: triples of operation (1 allocates, 2 frees), block's number and bytes."""
    where: dict[int, int | None] = {}
    offsets: list[int] = []
    refusals: list[int] = []
    peak_in_use = peak_reserved = 0
    for number, (op, name, nbytes) in enumerate(events):
        if op == 1:
            offset = where[name] = model.allocate(nbytes)
            if offset is None:
                refusals.append(number)
        else:
            offset = where.pop(name)
            if offset is not None:
                model.free(offset)
        offsets.append(-1 if offset is None else offset)
        peak_in_use = max(peak_in_use, model.in_use)
        peak_reserved = max(peak_reserved, model.reserved)
    return Expected(
        offsets=offsets,
        refused=len(refusals),
        first_refused=refusals[0] if refusals else None,
        peak_in_use=peak_in_use,
        peak_reserved=peak_reserved,
        regions=model.regions,
        grants=model.grants,
    )
