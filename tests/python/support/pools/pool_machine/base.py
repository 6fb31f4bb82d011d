"""State machine over a pool: the pool, the program's allocations, and the invariants after every step."""

import gc
import sys
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant
from numpy.typing import NDArray

from allotment import Allocation, HostMemory, Pool
from allotment.source import Source
from support.pools.fickle import BrokenError, FickleSource
from support.pools.pool_machine.arguments import (
    LIMITS,
)
from support.pools.pool_model import GRANULE, Block, PoolModel


@dataclass(eq=False)
class Held:
    """An allocation that the program refers to."""

    allocation: Allocation
    block: Block
    freed: bool = False


class PoolBase(RuleBasedStateMachine):
    """State machine with a pool, the program's references to its memory, and the model."""

    #: The pools' source: ``host``, ``capped`` (host memory of limited size), ``address-space`` or ``fickle``.
    kind: str

    def __init__(self) -> None:
        super().__init__()
        self.objects: list[Held] = []
        #: Arrays over the memory of allocations, with the allocations' blocks.
        self.views: list[tuple[NDArray[np.uint8], Block]] = []
        #: Blocks that only garbage in cycles refers to.
        self.cycles: list[Block] = []
        #: Types of the exceptions that Python could not raise.
        self.unraisable: list[object] = []
        #: Number of the source's callbacks so far, and the exceptions that they raised.
        self.callbacks = 0
        self.callback_errors: list[BaseException] = []
        gc.disable()
        self.former_hook = sys.unraisablehook
        sys.unraisablehook = lambda report: self.unraisable.append(type(report.exc_value))

    def teardown(self) -> None:
        try:
            if hasattr(self, "pool"):
                self.drop_everything()
                self.source_has_everything_back()
        finally:
            sys.unraisablehook = self.former_hook
            gc.enable()

    @initialize(
        limit=LIMITS,
        growth=some.booleans(),
        trim_on_oom=some.booleans(),
        joins=some.sampled_from([None, True, False]),
        wait=some.sampled_from([0.0, 0.0, 0.0, 0.002]),
        fraction=some.sampled_from([0.0, 0.0, 1e-12, 0.01, 0.5, 1.0]),
        gap=some.sampled_from([0, GRANULE]),
    )
    def make(
        self,
        limit: int,
        growth: bool,
        trim_on_oom: bool,
        joins: bool | None,
        wait: float,
        fraction: float,
        gap: int,
    ) -> None:
        self.fickle = FickleSource(gap, joins_regions=gap == 0)
        self.capped = HostMemory(max(limit * 3 // 4, 1))
        source: Any = {"capped": self.capped, "fickle": cast(Source, self.fickle)}.get(self.kind, self.kind)
        self.trim_on_oom = trim_on_oom
        self.pool = Pool(
            limit,
            source=source,
            growth=growth,
            trim_on_oom=trim_on_oom,
            joins_regions=joins,
            wait_seconds=wait,
            fragmentation_fraction=fraction,
            # The program has switched the collector off.
            collect_garbage=True,
        )
        self.model = PoolModel(self.pool, is_memory=self.kind in ("host", "capped"))

    def drop_everything(self) -> None:
        self.views.clear()
        self.objects.clear()
        self.cycles.clear()
        gc.collect()
        self.model.remove_dead()
        self.model.check()
        for block in list(self.model.blocks.values()):
            self.pool.free(block.start)
            self.model.remove(block)
        self.model.check()

    def source_has_everything_back(self) -> None:
        # Dropping the last reference to a pool releases its regions.
        del self.pool, self.model.pool
        self.fickle.callback = None
        gc.collect()
        assert (self.capped.used, self.fickle.used) == (0, 0)
        self.nothing_went_wrong_unseen()
        self.unraisable.clear()

    def is_live(self, block: Block) -> bool:
        return self.model.blocks.get(block.start) is block

    def is_viewed(self, block: Block) -> bool:
        return any(viewed is block for _, viewed in self.views)

    def pick(self, which: int) -> Block:
        return list(self.model.blocks.values())[which % len(self.model.blocks)]

    def garbage_is_there(self) -> bool:
        self.cycles = [block for block in self.cycles if self.is_live(block)]
        return bool(self.cycles)

    @invariant()
    def the_pool_is_what_the_model_says(self) -> None:
        self.model.remove_dead()
        self.model.check()
        stats = self.pool.stats()
        if self.kind == "capped":
            assert self.capped.used == stats.reserved <= self.capped.capacity
        if self.kind == "fickle":
            assert self.fickle.used == stats.reserved

    @invariant()
    def nothing_went_wrong_unseen(self) -> None:
        assert not self.callback_errors, self.callback_errors
        assert self.unraisable == [BrokenError] * self.fickle.raised_in_release
