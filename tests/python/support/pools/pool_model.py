"""Reference model of a pool: a dictionary of live blocks, and counters."""

import ctypes
import weakref
from dataclasses import dataclass

from allotment import Allocation, Pool, PoolStats, Snapshot

GRANULE = 256
#: Blocks of at most this many bytes are filled and compared completely, longer ones at both ends.
WHOLE = 1 << 16
EDGE = 1 << 10


def rounded(nbytes: int) -> int:
    """Round a size up to a multiple of the granule."""
    return -(-nbytes // GRANULE) * GRANULE


@dataclass(eq=False)
class Block:
    """A chunk in use, as the model expects it."""

    start: int
    size: int
    requested: int
    id: int
    #: Address returned to the caller; above `start` if the alignment exceeds the granule.
    address: int
    #: The byte value that the block is filled with.
    stamp: int
    #: The object whose finaliser frees the block; ``None`` for a plain address.
    holder: "weakref.ref[Allocation] | None" = None

    def _edges(self) -> list[tuple[int, int]]:
        if self.requested <= WHOLE:
            return [(self.address, self.requested)]
        return [(self.address, EDGE), (self.address + self.requested - EDGE, EDGE)]

    def fill(self) -> None:
        """Fill the memory with the stamp."""
        for address, nbytes in self._edges():
            ctypes.memset(address, self.stamp, nbytes)

    def check(self) -> None:
        """Check that the memory still contains the stamp."""
        for address, nbytes in self._edges():
            assert ctypes.string_at(address, nbytes) == bytes([self.stamp]) * nbytes, self


def _holds_aligned(nbytes: int, alignment: int, before: Snapshot) -> bool:
    """Whether the smallest free chunk for a size, the lowest of several, has an aligned piece of that size."""
    needed = rounded(nbytes)
    free = [
        (chunk.size, chunk.address)
        for region in before.regions
        for chunk in region.chunks
        if not chunk.in_use and chunk.size >= needed
    ]
    size, address = min(free, default=(0, 0))
    return bool(size) and -address % alignment + needed <= size


class PoolModel:
    """Expected blocks and counters of one pool."""

    def __init__(self, pool: Pool, *, is_memory: bool) -> None:
        self.pool = pool
        self.is_memory = is_memory
        self.blocks: dict[int, Block] = {}
        #: Starts of blocks that were freed, newest last.
        self.former: list[int] = []
        self.num_allocs = 0
        self.num_refused = 0
        self.largest_requested = 0
        self.peak_requested = 0
        self.peak_in_use = 0
        self.peak_reserved = 0
        self.closed = False

    @property
    def requested(self) -> int:
        """Bytes requested by the live blocks."""
        return sum(block.requested for block in self.blocks.values())

    @property
    def in_use(self) -> int:
        """Bytes of the chunks in use."""
        return sum(block.size for block in self.blocks.values())

    def add(self, requested: int, address: int, alignment: int, holder: Allocation | None) -> Block:
        """Add an allocation, check it against a snapshot of the pool, and return its block."""
        chunks = [
            chunk
            for region in self.pool.snapshot().regions
            for chunk in region.chunks
            if chunk.in_use and chunk.address <= address < chunk.address + chunk.size
        ]
        assert len(chunks) == 1, "the allocation must lie in one chunk in use"
        chunk = chunks[0]
        assert address % alignment == 0
        assert address - chunk.address < max(alignment, GRANULE)
        assert address + requested <= chunk.address + chunk.size
        self.num_allocs += 1
        block = Block(chunk.address, chunk.size, requested, chunk.id, address, self.num_allocs % 251 + 1)
        for other in self.blocks.values():
            assert block.start + block.size <= other.start or other.start + other.size <= block.start
        if holder is not None:
            assert (holder.id, holder.requested) == (block.id, requested)
            assert holder.address + holder.size == block.start + block.size
            block.holder = weakref.ref(holder)
        self.blocks[block.start] = block
        self.largest_requested = max(self.largest_requested, requested)
        if self.is_memory:
            block.fill()
        return block

    def settle_peaks(self) -> None:
        """Raise the peaks to the current amounts."""
        self.peak_requested = max(self.peak_requested, self.requested)
        self.peak_in_use = max(self.peak_in_use, self.in_use)

    def remove(self, block: Block) -> None:
        """Remove a freed block."""
        del self.blocks[block.start]
        self.former.append(block.start)

    def remove_dead(self) -> None:
        """Remove the blocks whose objects are dead."""
        for block in list(self.blocks.values()):
            if block.holder is not None and block.holder() is None:
                self.remove(block)

    def would_serve(
        self, nbytes: int, before: Snapshot, *, trim_on_oom: bool, alignment: int = GRANULE
    ) -> bool:
        """Whether a pool in the state of a snapshot serves a request, if the source grants every region."""
        padded = nbytes + max(0, alignment - GRANULE) if nbytes else 0
        if self.closed or padded > (1 << 63) - GRANULE:
            return False
        if nbytes and _holds_aligned(nbytes, alignment, before):
            return True
        needed = rounded(padded)
        free = [chunk.size for region in before.regions for chunk in region.chunks if not chunk.in_use]
        room = before.stats.limit - before.stats.reserved
        idle = sum(
            region.size for region in before.regions if not any(chunk.in_use for chunk in region.chunks)
        )
        grows_after_trim = trim_on_oom and idle > 0 and needed <= room + idle
        return nbytes == 0 or needed <= max(free, default=0) or needed <= room or grows_after_trim

    def check(self) -> None:
        """Compare the pool's statistics and snapshot with the model."""
        snapshot = self.pool.snapshot()
        stats = self.pool.stats()
        assert snapshot.stats == stats
        self._check_chunks(snapshot)
        self._check_counters(stats)
        self._check_free(snapshot, stats)
        if self.closed and not self.blocks:
            assert stats.reserved == 0, "a closed pool without allocations holds nothing"
        if self.is_memory:
            for block in self.blocks.values():
                block.check()

    def _check_chunks(self, snapshot: Snapshot) -> None:
        in_use = []
        last_end = 0
        for region in snapshot.regions:
            assert last_end <= region.address
            end, was_free = region.address, False
            for chunk in region.chunks:
                assert chunk.address == end
                assert chunk.size > 0
                assert chunk.size % GRANULE == 0
                assert chunk.in_use or not was_free, "two free chunks side by side"
                end, was_free = end + chunk.size, not chunk.in_use
                if chunk.in_use:
                    in_use.append((chunk.address, chunk.size, chunk.requested, chunk.id))
            assert end == region.address + region.size
            last_end = end
        blocks = sorted(self.blocks.values(), key=lambda block: block.start)
        assert in_use == [(block.start, block.size, block.requested, block.id) for block in blocks]

    def _check_counters(self, stats: PoolStats) -> None:
        assert stats.num_live == len(self.blocks)
        assert stats.in_use == self.in_use
        assert stats.requested == self.requested
        assert stats.num_allocs == self.num_allocs
        assert stats.num_refused == self.num_refused
        assert stats.largest_requested == self.largest_requested
        assert stats.peak_in_use == self.peak_in_use
        assert stats.peak_requested == self.peak_requested
        assert max(self.peak_reserved, stats.reserved) <= stats.peak_reserved <= stats.limit
        self.peak_reserved = stats.peak_reserved

    def _check_free(self, snapshot: Snapshot, stats: PoolStats) -> None:
        free = [chunk.size for region in snapshot.regions for chunk in region.chunks if not chunk.in_use]
        assert stats.reserved == sum(region.size for region in snapshot.regions) <= stats.limit
        assert stats.num_regions == len(snapshot.regions)
        assert stats.free == sum(free) == stats.reserved - stats.in_use
        assert stats.largest_free == max(free, default=0)
        expected = (stats.free - stats.largest_free) / stats.free if stats.free else 0.0
        assert stats.fragmentation == expected
