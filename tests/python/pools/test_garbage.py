"""Python's collector before a refusal: whether it runs, and never twice for nothing."""

import gc
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from allotment import OutOfMemoryError, Pool
from allotment.devices.environment.settings import read_settings
from support.devices import run_on_gpus
from support.interpreter import COLLECTOR_RUNS

MIB = 1 << 20


@contextmanager
def collections() -> Iterator[list[int]]:
    """The generations that were collected in the block, once for the runs that a pool makes at once."""
    generations: list[int] = []
    runs = itertools.count()

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2 and next(runs) % COLLECTOR_RUNS == 0:
            generations.append(2)

    gc.callbacks.append(note)
    try:
        yield generations
    finally:
        gc.callbacks.remove(note)


@contextmanager
def collector_off() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def refuse(pool: Pool, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(OutOfMemoryError):
            pool.malloc(MIB)


def leak_into_a_cycle(pool: Pool) -> None:
    cycle: list[object] = [pool.allocate(MIB)]
    cycle.append(cycle)


@pytest.mark.parametrize(
    ("told", "enabled", "collects"),
    [
        (None, True, True),
        (True, True, True),
        (False, True, False),
        (None, False, False),
        (True, False, True),
        (False, False, False),
    ],
)
def test_the_option_and_the_programs_collector_decide(
    told: bool | None, enabled: bool, collects: bool
) -> None:
    pool = Pool("1MiB", growth=False, collect_garbage=told)
    assert pool.collect_garbage is told
    gc.collect()
    with collector_off():
        leak_into_a_cycle(pool)
        if enabled:
            gc.enable()
        with collections() as seen:
            if collects:
                assert pool.malloc(MIB)
            else:
                refuse(pool)
        assert len(seen) == collects
    gc.collect()


@pytest.mark.parametrize(("text", "told"), [("1", True), ("0", False), ("", None), (None, None)])
def test_the_environment_says_it_for_pools_and_devices(
    text: str | None, told: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {} if text is None else {"ALLOTMENT_COLLECT_GARBAGE": text}
    monkeypatch.delenv("ALLOTMENT_COLLECT_GARBAGE", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert Pool("1MiB").collect_garbage is told
    assert Pool("1MiB", collect_garbage=True).collect_garbage is True
    assert Pool("1MiB", collect_garbage=False).collect_garbage is False
    assert read_settings(environ).collect_garbage is told


@pytest.mark.parametrize("text", ["2", "yes", " 1", "true"])
def test_another_text_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOTMENT_COLLECT_GARBAGE", text)
    for ask in (lambda: Pool("1MiB"), lambda: read_settings({"ALLOTMENT_COLLECT_GARBAGE": text})):
        with pytest.raises(ValueError, match=rf"ALLOTMENT_COLLECT_GARBAGE='?{text}'? .*0 n?or 1"):
            ask()
    assert Pool("1MiB", collect_garbage=False)


def test_refusals_in_a_row_collect_once() -> None:
    pool = Pool("1MiB", growth=False)
    kept = pool.malloc(256)
    with collector_off():
        gc.enable()
        with collections() as seen:
            refuse(pool, 100)
        assert len(seen) == 1
        # What was allocated or freed since may be garbage.
        pool.free(kept)
        kept = pool.malloc(256)
        with collections() as seen:
            refuse(pool, 100)
        assert len(seen) == 1


def test_a_collection_that_freed_something_is_not_the_last() -> None:
    pool = Pool("2MiB", growth=False)
    for _ in range(5):
        leak_into_a_cycle(pool)
        kept = pool.malloc(MIB)
        block = pool.malloc(MIB)
        pool.free(kept)
        pool.free(block)


def test_each_pool_has_a_note_of_its_own() -> None:
    pools = [Pool("1MiB", growth=False) for _ in range(3)]
    kept = [pool.malloc(256) for pool in pools]
    with collections() as seen:
        for pool in pools * 5:
            refuse(pool)
    assert len(seen) == len(pools)
    del kept


def test_operations_on_devices_collect_as_their_pool_does() -> None:
    program = """
        import gc, sys
        import allotment.tf as tf
        from allotment.tf import v1
        collected = []
        gc.callbacks.append(lambda phase, info: collected.append(info["generation"]) if phase == "start" else None)
        def refuse():
            try:
                with tf.device("/GPU:0"):
                    tf.zeros([1024, 1024, 10])
            except tf.errors.ResourceExhaustedError as error:
                assert "OOM when allocating" in str(error) and "verdict" in str(error)
            else:
                raise AssertionError("not refused")
        refuse()
        first = collected.count(2)
        for _ in range(20):
            refuse()
        print(first, collected.count(2))
        """
    for text, expected in (
        ("0", "0 0"),
        ("1", f"{COLLECTOR_RUNS} {COLLECTOR_RUNS}"),
        ("", f"{COLLECTOR_RUNS} {COLLECTOR_RUNS}"),
    ):
        done = run_on_gpus("1:16MiB", program, ALLOTMENT_COLLECT_GARBAGE=text)
        assert (done.stdout.strip(), done.stderr) == (expected, "")


def test_threads_that_collect_at_once_each_get_what_is_garbage() -> None:
    threads = 4
    start = threading.Barrier(threads)

    def play(pool: Pool) -> None:
        for _ in range(15):
            leak_into_a_cycle(pool)
            start.wait(timeout=60)
            pool.free(pool.malloc(MIB))

    with ThreadPoolExecutor(threads) as runner, collector_off():
        played = [runner.submit(play, Pool(MIB, growth=False, collect_garbage=True)) for _ in range(threads)]
        for done in played:
            done.result()
