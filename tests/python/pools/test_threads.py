"""One pool, many threads."""

import ctypes
import gc
import os
import random
import threading
import time
from collections.abc import Callable

import pytest

from allotment import Allocation, OutOfMemoryError, Pool
from support.pools.sources import MappedSource

MIB = 1 << 20


def run_all(workers: list[Callable[[], None]], deadline: float) -> None:
    """Run each worker in a thread; fail with the first error, or on a worker that does not end."""
    errors: list[BaseException] = []

    def guarded(worker: Callable[[], None]) -> None:
        try:
            worker()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    end = time.monotonic() + deadline
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    assert not errors, errors[0]
    assert not [thread for thread in threads if thread.is_alive()], "a thread hangs"


def stamped(pool: Pool, tag: int, steps: int, refused: list[int]) -> None:
    """Allocate, stamp every byte at both ends, check the stamps, free; sizes from 1 byte to 4 MiB."""
    rng = random.Random(tag)
    held: list[tuple[int, int, int]] = []

    def release(index: int) -> None:
        address, size, stamp = held.pop(index)
        edge = min(size, 512)
        assert ctypes.string_at(address, edge) == bytes([stamp]) * edge
        assert ctypes.string_at(address + size - edge, edge) == bytes([stamp]) * edge
        pool.free(address)

    for step in range(steps):
        size = int(2 ** rng.uniform(0, 22))
        try:
            address = pool.malloc(size)
        except OutOfMemoryError:
            refused.append(size)
            while len(held) > 1:
                release(rng.randrange(len(held)))
            continue
        stamp = (tag * 31 + step) % 256
        edge = min(size, 512)
        ctypes.memset(address, stamp, edge)
        ctypes.memset(address + size - edge, stamp, edge)
        held.append((address, size, stamp))
        if len(held) > 12 or rng.random() < 0.45:
            release(rng.randrange(len(held)))
    while held:
        release(0)


def storm(steps: int, deadline: float) -> None:
    """Field report B025 (a): eight threads and a limit low enough to be hit."""
    pool = Pool("16MiB")
    refused: list[int] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            stats = pool.stats()
            assert 0 <= stats.requested <= stats.in_use <= stats.reserved <= stats.limit
            assert stats.in_use <= stats.peak_in_use
            assert stats.reserved <= stats.peak_reserved <= stats.limit
            pool.trim()
            pool.reset_peaks()
            time.sleep(0.005)

    def work(tag: int) -> None:
        stamped(pool, tag, steps, refused)

    def workers() -> None:
        try:
            run_all([lambda tag=tag: work(tag) for tag in range(8)], deadline)  # type: ignore[misc]
        finally:
            stop.set()

    # Each refusal collects garbage first. That none of it is older than this need not be found out each time.
    gc.freeze()
    try:
        run_all([workers, watch], deadline + 10)
    finally:
        gc.unfreeze()
    assert refused, "the limit was never hit: the test shows less than it should"
    stats = pool.stats()
    assert (stats.num_live, stats.in_use, stats.requested) == (0, 0, 0)
    assert stats.num_refused == len(refused)
    for region in pool.snapshot().regions:
        assert [chunk.in_use for chunk in region.chunks] == [False]
    pool.trim()
    assert pool.stats().reserved == 0


def test_b025_eight_threads_stamp_and_check() -> None:
    storm(5000, 60)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_b025_eight_threads_for_minutes() -> None:
    for _ in range(20):
        storm(20_000, 600)


def callbacks(seconds: float) -> None:
    """Field report B028: callbacks into Python, counters and allocations at once, all making progress."""
    pool = Pool("64MiB", source=MappedSource(48 * MIB))
    end = time.monotonic() + seconds
    progress = {"grow": 0, "watch": 0, "work": 0}

    def grow() -> None:
        while time.monotonic() < end:
            try:
                pool.allocate("20MiB").free()
                pool.trim()
            except OutOfMemoryError:
                pass
            progress["grow"] += 1

    def watch() -> None:
        while time.monotonic() < end:
            pool.stats()
            pool.snapshot().summary()
            pool.trim()
            pool.reset_peaks()
            pool.can_allocate("1MiB")
            progress["watch"] += 1

    def work() -> None:
        held: list[Allocation] = []
        while time.monotonic() < end:
            held.append(pool.allocate(1 + progress["work"] * 7919 % 200_000))
            if len(held) > 20:
                del held[::2]
            progress["work"] += 1

    run_all([grow, watch, work], seconds + 30)
    assert min(progress.values()) > 10 * seconds, progress
    gc.collect()
    assert pool.stats().num_live == 0


def test_b028_callbacks_counters_and_allocations_all_make_progress() -> None:
    callbacks(3)


@pytest.mark.long
def test_b028_for_half_a_minute() -> None:
    callbacks(30)


def test_a_waiting_request_is_served_by_another_threads_free() -> None:
    pool = Pool("1MiB", growth=False, wait_seconds=20)
    held = pool.malloc("1MiB")
    threading.Timer(0.3, pool.free, (held,)).start()
    start = time.monotonic()
    address = pool.malloc("1MiB")
    assert 0.2 < time.monotonic() - start < 10
    pool.free(address)
    assert pool.stats().num_refused == 0


def test_a_waiting_request_is_served_by_a_dropped_allocation() -> None:
    pool = Pool("1MiB", growth=False, wait_seconds=20)
    held = [pool.allocate("1MiB")]
    threading.Timer(0.3, held.clear).start()
    start = time.monotonic()
    pool.free(pool.malloc("1MiB"))
    assert time.monotonic() - start < 10


def test_what_becomes_garbage_during_a_wait_is_collected_before_the_refusal() -> None:
    pool = Pool("1MiB", growth=False, wait_seconds=0.6)
    cycle: list[object] = [pool.allocate("1MiB")]
    cycle.append(cycle)
    held = [cycle]
    del cycle
    threading.Timer(0.2, held.clear).start()
    pool.free(pool.malloc("1MiB"))
    assert pool.stats().num_refused == 0


def test_a_request_waits_its_time_and_is_refused() -> None:
    pool = Pool("1MiB", growth=False, wait_seconds=0.4)
    pool.malloc("1MiB")
    start = time.monotonic()
    with pytest.raises(OutOfMemoryError):
        pool.malloc(1)
    assert 0.35 < time.monotonic() - start < 10
    assert pool.stats().num_refused == 1


def test_an_interrupt_ends_the_wait() -> None:
    import signal

    # Python drops an interrupt that comes while a collection calls a library's callback, as Hypothesis has one.
    pool = Pool("1MiB", growth=False, wait_seconds=60, collect_garbage=False)
    pool.malloc("1MiB")
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        pool.malloc(1)
    assert time.monotonic() - start < 10


def test_finalisers_on_any_thread_lose_nothing() -> None:
    pool = Pool("64MiB")
    boxes: list[list[Allocation]] = [[] for _ in range(8)]

    def fill(box: list[Allocation], other: list[Allocation]) -> None:
        for step in range(3000):
            box.append(pool.allocate(1 + step % 5000))
            if step % 3 == 0:
                other.clear()

    run_all(
        [lambda i=i: fill(boxes[i], boxes[(i + 1) % 8]) for i in range(8)],  # type: ignore[misc]
        60,
    )
    for box in boxes:
        box.clear()
    stats = pool.stats()
    assert (stats.num_live, stats.in_use, stats.num_allocs) == (0, 0, 24_000)
