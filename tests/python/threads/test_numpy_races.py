"""NumPy's arrays in pools, made and dropped by many threads while handlers are installed and uninstalled."""

import queue
from typing import Any

import numpy as np
import pytest

from allotment import Pool
from allotment.integrations import numpy as pooled
from support.attempts import run_together
from support.pools.numpy_handlers import passes

pytestmark = pytest.mark.usefixtures("hasty_switches")

Array = np.ndarray[Any, Any]


def test_arrays_go_from_thread_to_thread() -> None:
    pool = Pool("64MiB")
    handed: queue.SimpleQueue[Array] = queue.SimpleQueue()

    def make(number: int) -> None:
        with pooled.use(pool):
            for step in range(400):
                handed.put(np.full(1 + step % 150, number, np.int64))

    def check() -> None:
        for _ in range(400):
            array = handed.get(timeout=20)
            assert array.min() == array.max()
            array += 1

    outcomes = run_together([*[lambda number=number: make(number) for number in range(4)], *[check] * 4])
    assert [outcome.error for outcome in outcomes] == [None] * 8
    stats = pool.stats()
    assert (stats.num_live, stats.in_use) == (0, 0)


def test_contexts_of_threads_install_and_uninstall() -> None:
    pools = [Pool("16MiB") for _ in range(4)]

    def work(number: int) -> list[Array]:
        kept = []
        for step in range(40):
            pooled.install(pools[number])
            array = np.full(100, step)
            pooled.uninstall()
            with pooled.use(pools[-1 - number]):
                kept.append(array + 1)
        return kept

    outcomes = run_together([lambda number=number: work(number) for number in range(4)])  # type: ignore[misc]
    for outcome in outcomes:
        assert outcome.error is None
        assert [int(array[0]) for array in outcome.value] == [*range(1, 41)]
    assert [pool.stats().num_live for pool in pools] == [40] * 4
    del outcome
    outcomes.clear()
    assert [pool.stats().in_use for pool in pools] == [0] * 4


def test_threads_install_process_wide_while_others_make_arrays() -> None:
    passes("""
    sys.setswitchinterval(1e-5)
    pools = [Pool("64MiB") for _ in range(4)]
    start, ended, errors = threading.Barrier(8), threading.Event(), []
    counts = [0] * 4

    def change(number):
        start.wait(20)
        for _ in range(60):
            try:
                pooled.install(pools[number], process_wide=True)
            except RuntimeError as error:
                if "already" not in str(error):
                    errors.append(error)
                continue
            counts[number] += 1
            pooled.uninstall()

    def use():
        start.wait(20)
        kept = []
        while not ended.is_set():
            array = np.full(len(kept) % 200 + 1, 7)
            kept.append(array)
            if len(kept) > 50:
                if not all((each == 7).all() for each in kept):
                    errors.append("an array has changed")
                kept.clear()

    changing = [threading.Thread(target=change, args=(number,)) for number in range(4)]
    using = [threading.Thread(target=use) for _ in range(4)]
    for thread in changing + using:
        thread.start()
    for thread in changing:
        thread.join()
    ended.set()
    for thread in using:
        thread.join()
    assert not errors, errors
    assert sum(counts) > 0
    assert get_handler_name() == "default_allocator"
    gc.collect()
    assert [pool.stats().in_use for pool in pools] == [0] * 4
    pooled.install(pools[0], process_wide=True)
    assert get_handler_name() == "allotment"
    """)


def test_each_thread_takes_its_own_refusal() -> None:
    pools = [Pool("1MiB", name=f"pool of {number}") for number in range(4)]

    def work(number: int) -> list[str]:
        names = []
        with pooled.use(pools[number]):
            for _ in range(25):
                try:
                    np.empty(1 << 21)
                except MemoryError:
                    refusal: Any = pooled.take_refusal()
                    names.append(refusal.pool)
        return names

    outcomes = run_together([lambda number=number: work(number) for number in range(4)])  # type: ignore[misc]
    assert [outcome.value for outcome in outcomes] == [[f"pool of {number}"] * 25 for number in range(4)]
