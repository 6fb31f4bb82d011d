"""Rules on the whole pool: trim, reset peaks, close, and work in several threads."""

from hypothesis import strategies as some
from hypothesis.stateful import rule

from allotment import OutOfMemoryError
from support.attempts import Outcome, attempt, run_together
from support.pools.pool_machine.arguments import ELSEWHERE, LIMITS
from support.pools.pool_machine.base import PoolBase
from support.pools.pool_model import GRANULE


class Whole(PoolBase):
    """Trims, resets peaks, closes, and runs several threads."""

    @rule(elsewhere=ELSEWHERE)
    def trim(self, elsewhere: bool) -> None:
        before = self.pool.snapshot()
        idle = sum(region.size for region in before.regions if not any(c.in_use for c in region.chunks))
        assert attempt(self.pool.trim, elsewhere=elsewhere) == Outcome(idle)
        assert self.pool.stats().reserved == before.stats.reserved - idle

    @rule(elsewhere=ELSEWHERE)
    def reset_peaks(self, elsewhere: bool) -> None:
        assert attempt(self.pool.reset_peaks, elsewhere=elsewhere) == Outcome()
        self.model.peak_requested = self.model.requested
        self.model.peak_in_use = self.model.in_use
        self.model.peak_reserved = 0
        assert self.pool.stats().peak_reserved == self.pool.stats().reserved

    @rule(programs=some.lists(some.lists(some.integers(1, 300_000), max_size=6), min_size=2, max_size=4))
    def work_in_several_threads(self, programs: list[list[int]]) -> None:
        """Run threads that each allocate, drop half of the allocations, and read statistics."""
        pool = self.pool
        self.fickle.mood, self.fickle.callback = "grant", None

        def work(sizes: list[int]) -> tuple[list[tuple[int, int]], list[int], int]:
            kept, dropped, refused = [], [], 0
            for size in sizes:
                try:
                    if size % 2:
                        kept.append((pool.malloc(size), size))
                    else:
                        pool.allocate(size)
                        dropped.append(size)
                except OutOfMemoryError:
                    refused += 1
                stats = pool.stats()
                assert stats.requested <= stats.in_use <= stats.reserved <= stats.limit
                assert stats.in_use <= stats.peak_in_use <= stats.peak_reserved <= stats.limit
                pool.trim()
                pool.snapshot()
            return kept, dropped, refused

        if self.model.closed:
            return
        outcomes = run_together([lambda sizes=sizes: work(sizes) for sizes in programs])  # type: ignore[misc]
        self.model.remove_dead()
        for outcome in outcomes:
            assert outcome.error is None, outcome
            kept, dropped, refused = outcome.value
            for address, size in kept:
                self.model.add(size, address, GRANULE, None)
            self.model.num_allocs += len(dropped)
            self.model.largest_requested = max(self.model.largest_requested, *dropped, 0)
            self.model.num_refused += refused
        self.model.settle_peaks()
        # The exact peaks depend on the threads' order: check the bounds, and take over the pool's.
        stats = pool.stats()
        assert self.model.peak_requested <= stats.peak_requested <= stats.peak_in_use
        assert self.model.peak_in_use <= stats.peak_in_use <= stats.peak_reserved
        self.model.peak_requested, self.model.peak_in_use = stats.peak_requested, stats.peak_in_use

    @rule(elsewhere=ELSEWHERE)
    def close(self, elsewhere: bool) -> None:
        if len(self.model.former) < 8:
            return
        assert attempt(self.pool.close, elsewhere=elsewhere).error is None
        self.model.closed = True

    @rule(limit=LIMITS, growth=some.booleans())
    def make_another(self, limit: int, growth: bool) -> None:
        if not self.model.closed:
            return
        self.drop_everything()
        self.source_has_everything_back()
        self.make(limit, growth, True, None, 0.0, 0.0, GRANULE)
