"""Pools whose threads keep small chunks: what is kept is free, and everything else is as without."""

import gc
import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import allotment.integrations.numpy as in_pools
from allotment import InvalidFreeError, OutOfMemoryError, Pool

MIB = 1 << 20


def cached_pool(limit: int = 16 * MIB) -> Pool:
    """Return a pool of which everything is reserved and free."""
    pool = Pool(limit, growth=False, thread_caches=True)
    pool.free(pool.malloc(limit))
    return pool


def test_the_option_is_off_unless_asked_for() -> None:
    assert (Pool(MIB).thread_caches, Pool(MIB, thread_caches=True).thread_caches) == (False, True)
    pool = Pool(MIB)
    pool.free(pool.malloc(100))
    assert (pool.stats().thread_cached, pool.stats().num_from_thread_caches) == (0, 0)


def test_small_requests_come_from_the_cache_and_count_exactly() -> None:
    pool = cached_pool()
    live = [pool.malloc(size) for size in range(1, 32769, 331)]
    stats = pool.stats()
    assert (stats.requested, stats.num_live) == (sum(range(1, 32769, 331)), len(live))
    assert stats.num_from_thread_caches == len(live) == stats.num_allocs - 1
    assert stats.free == stats.reserved - stats.in_use >= stats.thread_cached > 0
    for address in live:
        pool.free(address)
    stats = pool.stats()
    assert (stats.requested, stats.in_use, stats.num_live) == (0, 0, 0)
    assert 0 < stats.thread_cached <= 4 * MIB
    assert (pool.trim(), pool.stats().thread_cached) == (16 * MIB, 0)


def test_a_wrong_free_is_an_error_and_changes_nothing() -> None:
    pool = cached_pool()
    address, other = pool.malloc(1000), pool.malloc(1000)
    pool.free(address)
    for wrong in (address, other + 1, other + 256, 12345 * 256):
        with pytest.raises(InvalidFreeError):
            pool.free(wrong)
    assert pool.stats().num_live == 1
    with pool.allocate(1000) as again:
        assert again.address == address
        view = np.frombuffer(again, np.uint8)
        with pytest.raises(BufferError):
            pool.free(address)
        del view
    with pytest.raises(InvalidFreeError):
        pool.free(address)
    pool.free(other)
    assert pool.stats().num_live == 0


def test_what_other_threads_keep_serves_a_large_request() -> None:
    pool = cached_pool(MIB)
    kept, over = threading.Event(), threading.Event()

    def keep() -> None:
        for address in [pool.malloc(4096) for _ in range(100)]:
            pool.free(address)
        kept.set()
        over.wait(20)

    thread = threading.Thread(target=keep)
    thread.start()
    assert kept.wait(20)
    assert pool.stats().thread_cached > 0
    assert pool.can_allocate(MIB)
    with pool.allocate(MIB), pytest.raises(OutOfMemoryError) as refused:
        pool.malloc(1)
    assert (refused.value.in_use, refused.value.free) == (MIB, 0)
    over.set()
    thread.join()


def test_a_thread_that_ends_leaves_nothing() -> None:
    pool = cached_pool()

    def use() -> None:
        for size in range(1, 30000, 100):
            pool.free(pool.malloc(size))

    with ThreadPoolExecutor(1) as executor:
        executor.submit(use).result()
        assert pool.stats().thread_cached > 0
    # The executor waits for the end of the thread in Python, which comes before that of the system's thread.
    deadline = time.monotonic() + 20
    while pool.stats().thread_cached > 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    stats = pool.stats()
    assert (stats.thread_cached, stats.largest_free) == (0, 16 * MIB)


def test_a_scope_counts_every_allocation_of_its_block() -> None:
    pool = cached_pool()
    before = pool.malloc(1000)
    with pool.scope("step", limit=2048) as scope:
        inside = pool.malloc(1000)
        pool.free(before)
        assert (scope.live, pool.stats().thread_cached) == (1024, 0)
        pool.malloc(1000)
        with pytest.raises(OutOfMemoryError) as refused:
            pool.malloc(1)
    assert refused.value.verdict == "scope"
    pool.free(inside)
    snapshot = pool.snapshot()
    assert [chunk.requested for region in snapshot.regions for chunk in region.chunks if chunk.in_use] == [
        1000
    ]


@pytest.mark.parametrize("options", [{"guard": True}, {"owner_tags": True}], ids=str)
def test_a_pool_warns_where_the_caches_stay_unused(options: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match="thread_caches=True has no effect"):
        pool = Pool(MIB, thread_caches=True, **options)
    for _ in range(3):
        pool.free(pool.malloc(100))
    assert pool.stats().num_from_thread_caches == 0


def test_arrays_of_many_threads_live_in_the_pool() -> None:
    pool = cached_pool(64 * MIB)

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        live: list[np.ndarray] = []
        with in_pools.use(pool):
            for _ in range(500):
                if len(live) > 20:
                    del live[int(random.integers(20))]
                size = int(random.integers(1, 20_000))
                live.append(np.full(size, size % 251, np.uint8))
                assert all((each == each.size % 251).all() for each in live[-3:])

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(work, range(4)))
    gc.collect()
    assert pool.stats().num_from_thread_caches > 500
    assert (pool.stats().num_live, pool.stats().in_use) == (0, 0)


def test_an_array_may_be_resized_and_handed_to_another_thread() -> None:
    pool = cached_pool()
    with in_pools.use(pool):
        array = np.arange(500, dtype=np.int64)
    array.resize(510, refcheck=False)
    assert array[:500].sum() == 499 * 250
    array.resize(5000, refcheck=False)
    assert (array[:500].sum(), array[500:].sum()) == (499 * 250, 0)
    with ThreadPoolExecutor(1) as executor:
        arrays = [array]
        del array
        executor.submit(arrays.clear).result()
    gc.collect()
    assert pool.stats().num_live == 0


def _in_child(pool: Pool, address: int) -> None:
    for call in (lambda: pool.malloc(100), lambda: pool.free(address), pool.stats, pool.trim):
        with pytest.raises(RuntimeError):
            call()
    own = cached_pool()
    own.free(own.malloc(100))
    assert own.stats().num_from_thread_caches == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_owns_nothing() -> None:
    pool = cached_pool()
    address = pool.malloc(100)
    pool.free(pool.malloc(100))
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(pool, address))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    pool.free(address)
    assert pool.stats().num_live == 0
