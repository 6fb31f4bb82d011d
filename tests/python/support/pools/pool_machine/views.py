"""Rules that create and drop NumPy arrays over the memory of allocations."""

import numpy as np
from hypothesis import strategies as some
from hypothesis.stateful import rule
from numpy.typing import NDArray

from support.attempts import Outcome, attempt
from support.pools.pool_machine.arguments import ELSEWHERE, PLACES
from support.pools.pool_machine.base import PoolBase


class Views(PoolBase):
    """Arrays over allocations and over parts of them, which keep the allocations alive."""

    @rule(which=PLACES, start=some.integers(0, 300), elsewhere=ELSEWHERE)
    def look_at_an_object(self, which: int, start: int, elsewhere: bool) -> None:
        if not self.objects:
            return
        held = self.objects[which % len(self.objects)]
        outcome = attempt(lambda: np.asarray(memoryview(held.allocation)), elsewhere=elsewhere)
        dead = held.freed or (held.block.size > 0 and not self.is_live(held.block))
        if dead or not self.model.is_memory:
            assert type(outcome.error) is BufferError, outcome
            return
        array: NDArray[np.uint8] = outcome.value
        assert array.nbytes == held.block.requested
        assert not array.nbytes or array.ctypes.data == held.block.address
        assert (array[:10] == held.block.stamp).all()
        array[:10] = held.block.stamp
        # A view of a view keeps the memory alive, too.
        self.views.append((array[start:], held.block))

    @rule(which=PLACES, elsewhere=ELSEWHERE)
    def drop_a_view(self, which: int, elsewhere: bool) -> None:
        if not self.views:
            return
        box = [self.views.pop(which % len(self.views))[0]]
        assert attempt(box.clear, elsewhere=elsewhere) == Outcome()
        self.model.remove_dead()
