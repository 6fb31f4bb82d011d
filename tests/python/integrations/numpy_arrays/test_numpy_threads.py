"""Which threads and tasks use a pool through NumPy, and that arrays may die in any."""

import asyncio
import contextvars
import gc
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from allotment import Pool
from allotment.integrations import numpy as pooled
from support.pools.numpy_handlers import DEFAULT, OURS, handler_name

Array = np.ndarray[Any, Any]


@pytest.fixture
def pool() -> Pool:
    return Pool("256MiB")


def made_here() -> str | None:
    return handler_name(np.empty(100))


def in_thread(work: Any) -> Any:
    result: list[Any] = []
    thread = threading.Thread(target=lambda: result.append(work()))
    thread.start()
    thread.join(20)
    return result[0]


def inherits() -> bool:
    """Whether Python gives a new thread its maker's context."""
    mark: contextvars.ContextVar[int] = contextvars.ContextVar("mark", default=0)
    mark.set(1)
    return bool(in_thread(mark.get))


def test_a_new_thread_has_a_context_of_its_own(pool: Pool) -> None:
    expected = OURS if inherits() else DEFAULT
    with pooled.use(pool):
        assert in_thread(made_here) == expected
        with ThreadPoolExecutor(1) as executor:
            assert executor.submit(made_here).result() == expected


def test_a_copied_context_brings_the_pool_to_a_thread(pool: Pool) -> None:
    with pooled.use(pool):
        inside = contextvars.copy_context()
    assert in_thread(lambda: inside.run(made_here)) == OURS
    assert made_here() == DEFAULT


def test_a_thread_pool_can_install_it_in_each_thread(pool: Pool) -> None:
    with ThreadPoolExecutor(4, initializer=pooled.install, initargs=(pool,)) as executor:
        assert set(executor.map(lambda _: made_here(), range(50))) == {OURS}
    assert made_here() == DEFAULT
    assert pool.stats().num_live == 0


def test_tasks_and_their_threads_are_inside(pool: Pool) -> None:
    async def task() -> list[str | None]:
        names = [made_here(), await asyncio.to_thread(made_here)]
        await asyncio.sleep(0)
        return [*names, made_here()]

    async def main() -> list[str | None]:
        outside = asyncio.create_task(task())
        with pooled.use(pool):
            inside = [asyncio.create_task(task()) for _ in range(3)]
        after = asyncio.create_task(task())
        return [name for each in (outside, *inside, after) for name in await each]

    assert asyncio.run(main()) == [DEFAULT] * 3 + [OURS] * 9 + [DEFAULT] * 3


def test_a_task_that_uninstalls_does_so_for_itself(pool: Pool) -> None:
    async def task() -> str | None:
        pooled.uninstall()
        return made_here()

    async def main() -> list[str | None]:
        pooled.install(pool)
        inner = await asyncio.create_task(task())
        return [inner, made_here()]

    assert asyncio.run(main()) == [DEFAULT, OURS]


def test_arrays_die_on_other_threads_than_their_own(pool: Pool) -> None:
    made: queue.SimpleQueue[Array | None] = queue.SimpleQueue()

    def reap() -> int:
        count = 0
        while (array := made.get()) is not None:
            assert (array == array.size).all()
            count += 1
        return count

    with ThreadPoolExecutor(2) as reapers:
        counts = [reapers.submit(reap) for _ in range(2)]

        def make(step: int) -> None:
            made.put(np.full(1 + step * 37 % 5000, 1 + step * 37 % 5000))

        with ThreadPoolExecutor(2, initializer=pooled.install, initargs=(pool,)) as makers:
            list(makers.map(make, range(2000)))
        for _ in counts:
            made.put(None)
        assert sum(each.result() for each in counts) == 2000
    assert pool.stats().num_live == 0
    assert pool.stats().num_allocs >= 2000


@pytest.mark.parametrize("after_uninstall", [False, True])
def test_arrays_of_tasks_are_freed_in_another_thread(pool: Pool, after_uninstall: bool) -> None:
    async def main() -> list[Array]:
        async def task(n: int) -> Array:
            await asyncio.sleep(0)
            return np.full(n, n)

        return list(await asyncio.gather(*(task(n) for n in range(1, 200))))

    pooled.install(pool)
    arrays = asyncio.run(main())
    if after_uninstall:
        pooled.uninstall()
    assert pool.stats().num_live == 199
    in_thread(arrays.clear)
    assert pool.stats().num_live == 0
    if not after_uninstall:
        pooled.uninstall()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("views", [False, True])
def test_garbage_collected_inside_every_step(pool: Pool, views: bool) -> None:
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        with pooled.use(pool):
            for step in range(20_000):
                array = np.empty(1 + step * 97 % 3000, np.uint8)
                array[:] = step % 251
                held: list[Any] = [array[1:] if views else array, step % 251]
                held.append(held)
                if step % 50 == 0:
                    assert (held[0] == held[1]).all()
    finally:
        gc.set_threshold(*threshold)
    del array, held
    gc.collect()
    assert pool.stats().num_live == 0
    assert pool.stats().in_use == 0
    pool.trim()
    assert pool.stats().reserved == 0


@pytest.mark.timeout(60)
def test_threads_that_run_out_of_memory_and_try_again() -> None:
    pool = Pool("24MiB")
    refused = [0]

    def work(tag: int) -> None:
        random = np.random.default_rng(tag)
        pooled.install(pool)
        held: list[Array] = []
        for _ in range(1500):
            try:
                held.append(np.full(int(random.integers(1, 2 << 20)), tag, np.uint8))
                if len(held) > 5:
                    assert (held.pop(int(random.integers(len(held)))) == tag).all()
            except MemoryError:
                refused[0] += 1
                assert pooled.take_refusal() is not None
                held.clear()

    threads = [threading.Thread(target=work, args=(tag,)) for tag in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert refused[0] > 0
    stats = pool.stats()
    assert (stats.num_live, stats.in_use) == (0, 0)
    pool.trim()
    assert pool.stats().reserved == 0


def test_a_refusal_is_its_threads_own(pool: Pool) -> None:
    with pooled.use(pool), pytest.raises(MemoryError):
        np.empty(1 << 40)
    assert in_thread(pooled.take_refusal) is None
    assert pooled.take_refusal() is not None
