"""Pairs of calls from Python. Most of their time is the cost of a call."""

import time
from collections.abc import Callable

from allotment import Pool
from allotment.cli.bench.measure import Contender, Workload
from allotment.integrations import numpy as pool_memory

#: Pairs of a round.
PAIRS = 2_000

KIB = 1 << 10
MIB = 1 << 20


def timed(loop: Callable[[], object]) -> Callable[[], float]:
    """Return what runs a loop, and returns the nanoseconds."""

    def play() -> float:
        start = time.perf_counter_ns()
        loop()
        return time.perf_counter_ns() - start

    return play


def python_workloads() -> list[Workload]:
    """Return pairs of addresses, of allocations and of NumPy's arrays."""
    addresses = [
        Contender("pool.malloc, pool.free", timed(_addresses(Pool("1GiB", guard=False))), PAIRS),
        Contender("pool.allocate, free", timed(_allocations(Pool("1GiB", guard=False))), PAIRS),
    ]
    return [
        Workload("calls from Python, 1 KiB", "pair", addresses),
        *(
            Workload(
                f"numpy.empty of {name}",
                "pair",
                [
                    Contender(
                        "NumPy's arrays in a pool", timed(_arrays(nbytes, Pool("1GiB", guard=False))), PAIRS
                    ),
                    Contender("NumPy's own memory", timed(_arrays(nbytes, None)), PAIRS),
                ],
            )
            for name, nbytes in (("1 KiB", KIB), ("1 MiB", MIB))
        ),
    ]


def _addresses(pool: Pool) -> Callable[[], None]:
    malloc, free = pool.malloc, pool.free

    def loop() -> None:
        for _ in range(PAIRS):
            free(malloc(KIB))

    return loop


def _allocations(pool: Pool) -> Callable[[], None]:
    allocate = pool.allocate

    def loop() -> None:
        for _ in range(PAIRS):
            allocate(KIB).free()

    return loop


def _arrays(nbytes: int, pool: Pool | None) -> Callable[[], None]:
    """Return a loop that makes NumPy arrays of a size, in a pool or in NumPy's own memory."""
    import numpy as np

    empty, byte = np.empty, np.uint8

    def loop() -> None:
        for _ in range(PAIRS):
            empty(nbytes, byte)

    if pool is None:
        return loop
    memory = pool

    def loop_in_pool() -> None:
        with pool_memory.use(memory):
            loop()

    return loop_in_pool
