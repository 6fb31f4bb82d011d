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
    segments: list[Segment] = field(default_factory=list)
    peak_reserved: int = 0

    @property
    def reserved(self) -> int:
        return sum(segment.size for segment in self.segments)

    def allocate(self, name: int, nbytes: int, stream: int) -> bool:
        size = max(512, -(-nbytes // 512) * 512)
        small = size <= MIB
        place = self._fit(size, small, stream) or self._new_segment(size, small, stream)
        if place is None:
            return False
        segment, index = place
        block = segment.blocks[index]
        rest = block.size - size
        keeps = rest >= 512 if small else rest > MIB
        if keeps and (small or self.max_split_size is None or size < self.max_split_size):
            segment.blocks[index : index + 1] = [Piece(size), Piece(rest)]
        segment.blocks[index].owner = name
        return True

    def free(self, name: int) -> None:
        for segment in self.segments:
            for block in segment.blocks:
                if block.owner == name:
                    block.owner = None
            merged: list[Piece] = []
            for block in segment.blocks:
                if merged and merged[-1].owner is None and block.owner is None:
                    merged[-1].size += block.size
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
        if self.reserved + length > self.limit and self.max_split_size is not None and not small:
            self._release_oversized(max(size, self.max_split_size), stream)
        if self.reserved + length > self.limit:
            self.segments = [segment for segment in self.segments if not segment.is_free]
        if self.reserved + length > self.limit:
            return None
        self.segments.append(Segment(small, stream, [Piece(length)]))
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return self.segments[-1], 0

    def _release_oversized(self, wanted: int, stream: int) -> None:
        cached = [
            (segment.size, number)
            for number, segment in enumerate(self.segments)
            if segment.is_free and not segment.small and segment.stream == stream
        ]
        gone: set[int] = set()
        if large := [one for one in cached if one[0] >= wanted]:
            gone.add(min(large)[1])
        else:
            released = 0
            for size, number in sorted(cached, reverse=True):
                if released >= wanted or size < (self.max_split_size or 0):
                    break
                released += size
                gone.add(number)
        self.segments = [segment for number, segment in enumerate(self.segments) if number not in gone]
