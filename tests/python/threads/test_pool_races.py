"""Pools, allocations and scopes that threads use, change and close at the same time, with and without a GIL."""

import contextlib
import queue
import random
import threading
from typing import Any

import pytest

from allotment import Allocation, InvalidFreeError, OutOfMemoryError, Pool
from allotment._core import set_tag
from support.attempts import run_together

pytestmark = pytest.mark.usefixtures("hasty_switches")

KIB = 1 << 10
THREADS = 8


def together(*calls: Any) -> list[Any]:
    """Make the calls at the same time; return their values, or raise the first error."""
    outcomes = run_together(calls)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return [outcome.value for outcome in outcomes]


def assert_empty(pool: Pool) -> None:
    """Check that nothing is live, and that all free memory is in one chunk of each region."""
    stats = pool.stats()
    assert (stats.num_live, stats.in_use, stats.requested) == (0, 0, 0)
    assert all([chunk.in_use for chunk in region.chunks] == [False] for region in pool.snapshot().regions)


def test_addresses_are_freed_by_other_threads() -> None:
    pool = Pool("64MiB")
    handed: queue.SimpleQueue[int] = queue.SimpleQueue()

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(1500):
            handed.put(pool.malloc(rng.randrange(1, 8 * KIB)))
            if rng.random() < 0.9:
                pool.free(handed.get())

    together(*[lambda seed=seed: work(seed) for seed in range(THREADS)])
    while not handed.empty():
        pool.free(handed.get())
    assert_empty(pool)
    assert pool.stats().num_allocs == THREADS * 1500


def test_one_of_many_threads_frees_an_address() -> None:
    pool = Pool("4MiB")
    for _ in range(25):
        address = pool.malloc(100)
        outcomes = run_together([lambda address=address: pool.free(address)] * 4)  # type: ignore[misc]
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        assert len(errors) == 3
        assert all(isinstance(error, InvalidFreeError) for error in errors)
    assert_empty(pool)


def test_objects_die_in_other_threads() -> None:
    pool = Pool("64MiB")
    handed: queue.SimpleQueue[Allocation] = queue.SimpleQueue()

    def make() -> None:
        for size in range(1, 1000):
            handed.put(pool.allocate(size))

    def drop() -> None:
        for _ in range(999):
            memoryview(handed.get(timeout=20))[:1] = b"x"

    together(*[make] * 4, *[drop] * 4)
    assert_empty(pool)


def test_memory_stays_while_a_buffer_of_any_thread_exposes_it() -> None:
    pool = Pool("4MiB")
    allocation = pool.allocate(100)
    address = allocation.address

    def expose() -> None:
        for _ in range(20_000):
            with memoryview(allocation):
                pass

    def try_to_free() -> None:
        for step in range(20_000):
            # Until the end of the block nothing may free the memory, whatever buffers come and go elsewhere.
            with memoryview(allocation):
                try:
                    if step % 2:
                        pool.free(address)
                    else:
                        allocation.free()
                except BufferError:
                    continue
                raise AssertionError("memory was freed that a buffer exposes")

    together(expose, try_to_free, try_to_free)
    allocation.free()
    assert_empty(pool)


def test_one_thread_enters_a_scope() -> None:
    pool = Pool("4MiB")
    for _ in range(25):
        scope = pool.scope("step", every_thread=True)
        outcomes = run_together([scope.__enter__] * 4)
        assert sum(outcome.error is None for outcome in outcomes) == 1
        outcomes = run_together([lambda scope=scope: scope.__exit__(None, None, None)] * 4)  # type: ignore[misc]
        assert sum(outcome.error is None for outcome in outcomes) == 1


def test_a_limit_that_comes_while_a_scope_is_entered_holds() -> None:
    pool = Pool("4MiB")
    for _ in range(100):
        scope = pool.scope("step", every_thread=True)
        together(scope.__enter__, lambda scope=scope: scope.set_limit(KIB))
        assert scope.limit == KIB
        with pytest.raises(OutOfMemoryError, match="step"):
            pool.malloc(2 * KIB)
        scope.__exit__(None, None, None)


def test_figures_of_a_scope_do_not_vanish_while_it_ends() -> None:
    pool = Pool("4MiB")
    for _ in range(40):
        scope = pool.scope("step")
        left = threading.Event()

        def work(scope: Any = scope, left: threading.Event = left) -> None:
            with scope:
                pool.free(pool.malloc(KIB))
            left.set()

        def watch(scope: Any = scope, left: threading.Event = left) -> None:
            peak = 0
            while not left.is_set():
                seen = scope.peak
                assert seen >= peak
                peak = seen

        together(work, watch, watch)
        assert (scope.peak, scope.live) == (KIB, 0)


def test_a_pool_is_closed_while_threads_allocate() -> None:
    for _ in range(15):
        pool = Pool("16MiB")
        held: queue.SimpleQueue[int] = queue.SimpleQueue()

        def work(pool: Pool = pool, held: queue.SimpleQueue[int] = held) -> None:
            with contextlib.suppress(ValueError):
                while True:
                    held.put(pool.malloc(100))
                    pool.free(held.get())

        together(*[work] * 4, lambda pool=pool: pool.close())
        while not held.empty():
            pool.free(held.get())
        stats = pool.stats()
        assert (stats.num_live, stats.reserved) == (0, 0)


def test_snapshots_and_limits_agree_with_the_moment() -> None:
    pool = Pool("8MiB")
    working = threading.Semaphore(0)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(1200):
            try:
                address = pool.malloc(rng.randrange(1, 64 * KIB))
            except OutOfMemoryError:
                continue
            pool.free(address)
        working.release()

    def change() -> None:
        while not working.acquire(blocking=False):
            for limit in ("16MiB", "8MiB"):
                with contextlib.suppress(ValueError):
                    pool.set_limit(limit, trim=True)
        working.release()

    def look() -> None:
        while not working.acquire(blocking=False):
            snapshot = pool.snapshot()
            stats = snapshot.stats
            assert stats.in_use <= stats.reserved <= stats.limit
            chunks = [chunk for region in snapshot.regions for chunk in region.chunks]
            assert sum(chunk.size for chunk in chunks if chunk.in_use) == stats.in_use
            assert sum(region.size for region in snapshot.regions) == stats.reserved
            for region in snapshot.regions:
                assert sum(chunk.size for chunk in region.chunks) == region.size
        working.release()

    together(*[lambda seed=seed: work(seed) for seed in range(4)], change, look)
    assert_empty(pool)


def test_each_thread_has_tags_of_its_own() -> None:
    pool = Pool("16MiB", owner_tags=True)
    held: list[list[int]] = [[] for _ in range(THREADS)]

    def work(number: int) -> None:
        for step in range(200):
            set_tag(f"thread {number}" if step % 2 else None)
            held[number].append(pool.malloc(256))
        set_tag(None)

    together(*[lambda number=number: work(number) for number in range(THREADS)])
    owners = {
        chunk.address: chunk.owner
        for region in pool.snapshot().regions
        for chunk in region.chunks
        if chunk.in_use
    }
    line = work.__code__.co_firstlineno + 3
    for number, addresses in enumerate(held):
        for step, address in enumerate(addresses):
            assert owners[address] == (f"thread {number}" if step % 2 else f"test_pool_races.py:{line}")
