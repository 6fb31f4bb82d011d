"""Reference implementation of PyTorch's caching allocator, slow and simple, to compare the model in Rust with.

Each segment is a list of blocks; every request searches all of them.
"""

from dataclasses import dataclass, field

MIB = 1 << 20


@dataclass
class Piece:
    """A block of a segment; `owner` is the block's name while it is in use."""

    size: int
    owner: int | None = None
    #: Number of searches for large blocks when it became free.
    since: int = 0


@dataclass
class Segment:
    small: bool
    stream: int
    blocks: list[Piece]

    @property
    def size(self) -> int:
        return sum(block.size for block in self.blocks)

    @property
    def is_free(self) -> bool:
        return all(block.owner is None for block in self.blocks)


@dataclass
class Caching:
    limit: int
    max_split_size: int | None = None
    gc_threshold: float = 0.0
    searches: int = 0
    segments: list[Segment] = field(default_factory=list)
    peak_reserved: int = 0

    @property
    def reserved(self) -> int:
        return sum(segment.size for segment in self.segments)

    def allocate(self, name: int, nbytes: int, stream: int) -> bool:
        size = max(512, -(-nbytes // 512) * 512)
        small = size <= MIB
        self.searches += not small
        place = self._fit(size, small, stream) or self._new_segment(size, small, stream)
        if place is None:
            return False
        segment, index = place
        block = segment.blocks[index]
        rest = block.size - size
        keeps = rest >= 512 if small else rest > MIB
        if keeps and (small or self.max_split_size is None or size < self.max_split_size):
            segment.blocks[index : index + 1] = [Piece(size), Piece(rest, since=self.searches)]
        segment.blocks[index].owner = name
        return True

    def free(self, name: int) -> None:
        for segment in self.segments:
            for block in segment.blocks:
                if block.owner == name:
                    block.owner, block.since = None, self.searches
            merged: list[Piece] = []
            for block in segment.blocks:
                if merged and merged[-1].owner is None and block.owner is None:
                    merged[-1].size += block.size
                    # Only the block that was just freed has free neighbours.
                    merged[-1].since = self.searches
                else:
                    merged.append(block)
            segment.blocks = merged

    def _fit(self, size: int, small: bool, stream: int) -> tuple[Segment, int] | None:
        # Segments are in the order of their addresses.
        found = [
            (block.size, number, index)
            for number, segment in enumerate(self.segments)
            if (segment.small, segment.stream) == (small, stream)
            for index, block in enumerate(segment.blocks)
            if block.owner is None and block.size >= size
        ]
        if not found:
            return None
        length, number, index = min(found)
        if (most := self.max_split_size) is not None and (
            length >= most if size < most else length >= size + 20 * MIB
        ):
            return None
        return self.segments[number], index

    def _new_segment(self, size: int, small: bool, stream: int) -> tuple[Segment, int] | None:
        length = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        self._collect()
        if self.reserved + length > self.limit:
            # Without enough oversized blocks everything goes, even if what has gone makes room.
            enough = False
            if self.max_split_size is not None and not small:
                enough = self._release_oversized(max(size, self.max_split_size), stream)
            if not enough or self.reserved + length > self.limit:
                self.segments = [segment for segment in self.segments if not segment.is_free]
        if self.reserved + length > self.limit:
            return None
        self.segments.append(Segment(small, stream, [Piece(length)]))
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return self.segments[-1], 0

    def _collect(self) -> None:
        """Release large segments that were free for at least the average time, until the threshold is reached."""
        target = self.reserved - int(self.gc_threshold * self.limit)
        while self.gc_threshold > 0 and target > 0:
            free = [one for one in self.segments if one.is_free and not one.small]
            ages = [self.searches - one.blocks[0].since for one in free]
            gone = [one for one, age in zip(free, ages, strict=True) if age * len(ages) >= sum(ages)]
            if not gone:
                return
            target -= sum(one.size for one in gone)
            self.segments = [one for one in self.segments if not any(one is other for other in gone)]

    def _release_oversized(self, wanted: int, stream: int) -> bool:
        cached = [
            (segment.size, number)
            for number, segment in enumerate(self.segments)
            if segment.is_free and not segment.small and segment.stream == stream
        ]
        gone: set[int] = set()
        released = 0
        if large := [one for one in cached if one[0] >= wanted]:
            gone.add(min(large)[1])
            released = wanted
        else:
            for size, number in sorted(cached, reverse=True):
                if released >= wanted or size < (self.max_split_size or 0):
                    break
                released += size
                gone.add(number)
        self.segments = [segment for number, segment in enumerate(self.segments) if number not in gone]
        return released >= wanted
