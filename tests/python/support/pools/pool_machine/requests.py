"""Rules that request memory, and checks of the outcomes."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as some
from hypothesis.stateful import rule

from allotment import Allocation, OutOfMemoryError
from support.attempts import Outcome, attempt
from support.pools.fickle import FAULTY, BrokenError, Mood
from support.pools.pool_machine.arguments import ELSEWHERE, MAX_BYTES, SIZES
from support.pools.pool_machine.base import Held, PoolBase
from support.pools.pool_model import GRANULE, Block, rounded


class Requests(PoolBase):
    """Requests by `malloc` and `allocate`, with all sizes and alignments."""

    @rule(nbytes=SIZES, elsewhere=ELSEWHERE)
    def malloc(self, nbytes: int, elsewhere: bool) -> None:
        self.request(nbytes, GRANULE, lambda: self.pool.malloc(nbytes), elsewhere)

    @rule(sizes=some.lists(SIZES, min_size=3, max_size=12))
    def malloc_many(self, sizes: list[int]) -> None:
        for nbytes in sizes:
            self.malloc(nbytes, False)

    @rule(kibibytes=some.integers(0, 5000), elsewhere=ELSEWHERE)
    def malloc_by_text(self, kibibytes: int, elsewhere: bool) -> None:
        self.request(kibibytes << 10, GRANULE, lambda: self.pool.malloc(f"{kibibytes} KiB"), elsewhere)

    @rule(nbytes=SIZES, power=some.sampled_from([8, 8, 8, 0, 3, 9, 12]), elsewhere=ELSEWHERE)
    def allocate(self, nbytes: int, power: int, elsewhere: bool) -> None:
        alignment = 1 << power
        self.request(nbytes, alignment, lambda: self.pool.allocate(nbytes, alignment=alignment), elsewhere)

    def request(self, nbytes: int, alignment: int, call: Callable[[], Any], elsewhere: bool) -> bool:
        """Make a request, check its outcome against the model, and return whether it was served."""
        padded = nbytes + max(0, alignment - GRANULE) if nbytes else 0
        before = self.pool.snapshot()
        expected = self.model.would_serve(nbytes, before, trim_on_oom=self.trim_on_oom, alignment=alignment)
        expected_after_collection = expected or self.garbage_is_there()
        mood, misbehaved, callbacks = self.fickle.mood, self.fickle.misbehaved, self.callbacks
        outcome = attempt(call, elsewhere=elsewhere)
        self.model.remove_dead()
        # The source misbehaves for one request only.
        if self.fickle.misbehaved > misbehaved:
            self.fickle.mood = "grant"
        behaved = self.fickle.misbehaved == misbehaved and self.kind != "capped"
        if outcome.error is not None:
            effective_mood = mood if self.fickle.misbehaved > misbehaved else "grant"
            self.judge_refusal(outcome.error, nbytes, padded, effective_mood)
            assert not expected or not behaved or self.callbacks > callbacks, outcome.error
            return False
        assert expected_after_collection or self.callbacks > callbacks, "it was served though nothing fits"
        self.take(outcome.value, nbytes, alignment)
        return True

    def take(self, value: "int | Allocation", nbytes: int, alignment: int) -> None:
        """Add a served request to the model and to the program's allocations."""
        allocation = value if isinstance(value, Allocation) else None
        address = value.address if isinstance(value, Allocation) else value
        assert (address == 0) == (nbytes == 0)
        if nbytes:
            block = self.model.add(nbytes, address, alignment, allocation)
            self.model.settle_peaks()
        else:
            block = Block(0, 0, 0, 0, 0, 1)
        if allocation is not None:
            self.objects.append(Held(allocation, block))

    def judge_refusal(self, error: BaseException, nbytes: int, padded: int, mood: Mood) -> None:
        if padded > MAX_BYTES or self.model.closed:
            assert type(error) is ValueError, error
        elif mood in FAULTY and not isinstance(error, OutOfMemoryError):
            assert type(error) is RuntimeError, error
            assert FAULTY[mood] in str(error)
        else:
            self.model.num_refused += 1
            if mood == "exit":
                assert type(error) is SystemExit, error
                return
            assert type(error) is OutOfMemoryError, error
            assert type(error.__cause__) is {"raise": BrokenError, "nonsense": TypeError}.get(
                mood, type(None)
            )
            self.judge_figures(error, nbytes, rounded(padded))

    def judge_figures(self, error: OutOfMemoryError, nbytes: int, needed: int) -> None:
        stats = self.pool.stats()
        assert (error.requested, error.limit) == (nbytes, stats.limit)
        assert (error.in_use, error.reserved) == (stats.in_use, stats.reserved)
        assert (error.free, error.largest_free) == (stats.free, stats.largest_free)
        assert error.largest_free < needed
        assert (error.verdict == "limit") == (needed > stats.limit)
        assert error.internal_fragmentation == stats.in_use - stats.requested == stats.internal_fragmentation
        if error.verdict in ("full", "slack", "fragmented"):
            assert (error.verdict == "fragmented") == (needed <= stats.limit - stats.in_use)
        if error.verdict == "slack":
            assert needed <= stats.limit - stats.requested
        # The pool collects garbage only if the source did not fail and the limit allows the request.
        if error.__cause__ is None and error.verdict != "limit":
            assert not self.garbage_is_there(), "it was refused while garbage held memory"

    @rule(nbytes=SIZES, elsewhere=ELSEWHERE)
    def can_allocate(self, nbytes: int, elsewhere: bool) -> None:
        expected = self.model.would_serve(nbytes, self.pool.snapshot(), trim_on_oom=self.trim_on_oom)
        outcome = attempt(lambda: self.pool.can_allocate(nbytes), elsewhere=elsewhere)
        # A capped source may have less memory than the limit allows.
        assert outcome == Outcome(expected) or (self.kind == "capped" and outcome == Outcome(False))
