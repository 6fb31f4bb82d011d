"""Rules with invalid arguments: they raise the documented error and leave the pool unchanged."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import strategies as some
from hypothesis.stateful import rule

from allotment import InvalidFreeError
from support.attempts import Outcome, attempt
from support.pools.pool_machine.arguments import BAD_ALIGNMENTS, BAD_SIZES, ELSEWHERE, NO_NUMBERS, PLACES
from support.pools.pool_machine.base import PoolBase


class Misuse(PoolBase):
    """Invalid sizes, alignments and addresses."""

    @contextmanager
    def nothing_changes(self) -> Iterator[None]:
        before = self.pool.snapshot()
        yield
        assert self.pool.snapshot() == before

    @rule(size=BAD_SIZES, alignment=BAD_ALIGNMENTS, elsewhere=ELSEWHERE)
    def ask_for_nonsense(self, size: Any, alignment: Any, elsewhere: bool) -> None:
        wrong = ValueError if isinstance(size, str) or type(size) is int else TypeError
        wrong_alignment = ValueError if type(alignment) is int else TypeError
        with self.nothing_changes():
            for call in (self.pool.malloc, self.pool.allocate):
                outcome = attempt(lambda call=call: call(size), elsewhere=elsewhere)  # type: ignore[misc]
                assert type(outcome.error) is wrong, outcome
            outcome = attempt(lambda: self.pool.allocate(1, alignment=alignment), elsewhere=elsewhere)
            assert type(outcome.error) is wrong_alignment, outcome
            outcome = attempt(lambda: self.pool.can_allocate(size), elsewhere=elsewhere)
            if type(size) is int and size > 0:
                assert outcome == Outcome(False)
            else:
                assert type(outcome.error) is wrong, outcome

    @rule(address=some.one_of(some.integers(), some.integers(0, 1 << 64)), elsewhere=ELSEWHERE)
    def free_what_was_never_handed_out(self, address: int, elsewhere: bool) -> None:
        if address != 0 and address not in self.model.blocks:
            self.refuses_to_free(address, elsewhere)

    @rule(what=NO_NUMBERS, elsewhere=ELSEWHERE)
    def free_what_is_no_address(self, what: Any, elsewhere: bool) -> None:
        with self.nothing_changes():
            outcome = attempt(lambda: self.pool.free(what), elsewhere=elsewhere)
            assert type(outcome.error) is TypeError, outcome

    @rule(which=PLACES, elsewhere=ELSEWHERE)
    def free_twice(self, which: int, elsewhere: bool) -> None:
        if not self.model.former:
            return
        address = self.model.former[-1 - which % len(self.model.former)]
        if address not in self.model.blocks:
            self.refuses_to_free(address, elsewhere)

    @rule(which=PLACES, off=some.sampled_from([1, -1, 255, 256, -256, 512]), elsewhere=ELSEWHERE)
    def free_beside_a_start(self, which: int, off: int, elsewhere: bool) -> None:
        if not self.model.blocks:
            return
        address = self.pick(which).start + off
        if address not in self.model.blocks:
            self.refuses_to_free(address, elsewhere)

    def refuses_to_free(self, address: int, elsewhere: bool) -> None:
        with self.nothing_changes():
            outcome = attempt(lambda: self.pool.free(address), elsewhere=elsewhere)
            assert type(outcome.error) is InvalidFreeError, outcome

    @rule(elsewhere=ELSEWHERE)
    def free_nothing(self, elsewhere: bool) -> None:
        with self.nothing_changes():
            assert attempt(lambda: self.pool.free(0), elsewhere=elsewhere) == Outcome()
