"""Rules that free memory in every supported way."""

import gc

import numpy as np
from hypothesis import strategies as some
from hypothesis.stateful import rule

from allotment import InvalidFreeError
from support.attempts import Outcome, attempt, run_together
from support.pools.pool_machine.arguments import (
    ELSEWHERE,
    PLACES,
)
from support.pools.pool_machine.base import Held
from support.pools.pool_machine.requests import Requests
from support.pools.pool_model import GRANULE


class Freeing(Requests):
    """Frees by address, by object, by finaliser, by `with`, and by several threads at once."""

    @rule(which=PLACES, elsewhere=ELSEWHERE)
    def free(self, which: int, elsewhere: bool) -> None:
        if not self.model.blocks:
            return
        block = self.pick(which)
        if self.model.is_memory:
            block.check()
        outcome = attempt(lambda: self.pool.free(block.start), elsewhere=elsewhere)
        if self.is_viewed(block):
            assert type(outcome.error) is BufferError, outcome
        else:
            assert outcome == Outcome()
            self.model.remove(block)

    @rule(places=some.lists(PLACES, min_size=3, max_size=12))
    def free_many(self, places: list[int]) -> None:
        for which in places:
            self.free(which, False)

    @rule(which=PLACES, elsewhere=ELSEWHERE)
    def free_an_object(self, which: int, elsewhere: bool) -> None:
        if not self.objects:
            return
        held = self.objects[which % len(self.objects)]
        outcome = attempt(held.allocation.free, elsewhere=elsewhere)
        self.judge_free(held, outcome)

    def judge_free(self, held: Held, outcome: Outcome) -> None:
        if self.is_viewed(held.block):
            assert type(outcome.error) is BufferError, outcome
        elif held.freed or (held.block.size > 0 and not self.is_live(held.block)):
            assert type(outcome.error) is InvalidFreeError, outcome
            held.freed = True
        else:
            assert outcome == Outcome()
            held.freed = True
            if held.block.size > 0:
                self.model.remove(held.block)

    @rule(which=PLACES, fate=some.sampled_from(["dies", "dies", "garbage"]), elsewhere=ELSEWHERE)
    def forget_an_object(self, which: int, fate: str, elsewhere: bool) -> None:
        if not self.objects:
            return
        held = self.objects.pop(which % len(self.objects))
        box: list[object] = [held.allocation]
        if fate == "garbage":
            box.append(box)
            if self.is_live(held.block) and not self.is_viewed(held.block):
                self.cycles.append(held.block)
            del held, box
        else:
            del held
            assert attempt(box.clear, elsewhere=elsewhere) == Outcome()
        self.model.remove_dead()

    @rule(elsewhere=ELSEWHERE)
    def collect_garbage(self, elsewhere: bool) -> None:
        assert attempt(gc.collect, elsewhere=elsewhere).error is None
        self.model.remove_dead()
        assert not self.garbage_is_there()

    @rule(
        nbytes=some.integers(0, 5000),
        inside=some.sampled_from(["nothing", "free", "raise", "view"]),
        elsewhere=ELSEWHERE,
    )
    def with_an_object(self, nbytes: int, inside: str, elsewhere: bool) -> None:
        if not self.request(nbytes, GRANULE, lambda: self.pool.allocate(nbytes), elsewhere):
            return
        held = self.objects[-1]

        def block() -> None:
            with held.allocation as entered:
                assert entered is held.allocation
                if inside == "free":
                    entered.free()
                elif inside == "raise":
                    raise LookupError
                elif inside == "view" and self.model.is_memory:
                    self.views.append((np.asarray(memoryview(entered)), held.block))

        outcome = attempt(block, elsewhere=elsewhere)
        if inside == "raise":
            assert type(outcome.error) is LookupError, outcome
            outcome = Outcome()
        self.judge_free(held, outcome)

    @rule(which=PLACES, threads=some.integers(2, 4))
    def free_in_several_threads(self, which: int, threads: int) -> None:
        if not self.model.blocks:
            return
        block = self.pick(which)
        if self.is_viewed(block):
            return
        outcomes = run_together([lambda: self.pool.free(block.start)] * threads)
        self.exactly_one_frees(outcomes)
        self.model.remove(block)

    @rule(which=PLACES, threads=some.integers(2, 4))
    def free_an_object_in_several_threads(self, which: int, threads: int) -> None:
        if not self.objects:
            return
        held = self.objects[which % len(self.objects)]
        if self.is_viewed(held.block) or held.freed or not self.is_live(held.block):
            return
        outcomes = run_together([held.allocation.free] * threads)
        self.exactly_one_frees(outcomes)
        held.freed = True
        self.model.remove(held.block)

    def exactly_one_frees(self, outcomes: list[Outcome]) -> None:
        kinds = sorted(type(outcome.error).__name__ for outcome in outcomes)
        assert kinds == ["InvalidFreeError"] * (len(outcomes) - 1) + ["NoneType"]
