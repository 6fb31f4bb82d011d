"""Whose an array's data is, in reports of the pool and in `tracemalloc`."""

import gc
import inspect
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pytest

from allotment import Pool
from allotment._core import set_tag
from allotment.integrations import numpy as pooled

HERE = Path(__file__).name


@pytest.fixture
def pool() -> Pool:
    return Pool("256MiB", owner_tags=True)


def owners(pool: Pool) -> list[str]:
    """The owners of the chunks in use, in the order in which they were allocated."""
    chunks = [chunk for region in pool.snapshot().regions for chunk in region.chunks if chunk.in_use]
    return [str(chunk.owner) for chunk in sorted(chunks, key=lambda chunk: chunk.id)]


def line_of(code: CodeType) -> str:
    return f"{HERE}:{code.co_firstlineno}"


MAKERS: list[Callable[[], Any]] = [
    lambda: np.empty(1000),
    lambda: np.ones(1000),
    lambda: np.zeros((10, 100)),
    lambda: np.full(1000, 3.0),
    lambda: np.stack([np.float64(1)] * 1000),
    lambda: np.arange(1000),
    lambda: np.linspace(0, 1, 1000),
    lambda: np.float64(1) + np.broadcast_to(2.0, 1000),
    lambda: np.fromiter(iter(range(1000)), np.int64),
    lambda: np.fromstring("1 " * 1000, sep=" "),
]


@pytest.mark.parametrize("make", MAKERS, ids=range(len(MAKERS)))
def test_an_array_is_the_line_that_made_it(pool: Pool, make: Callable[[], Any]) -> None:
    with pooled.use(pool):
        array = make()
    assert owners(pool)[-1:] == [line_of(make.__code__)]
    assert array.size == 1000
    del array
    assert pool.stats().num_live == 0


def test_an_allocation_is_the_line_that_asks_and_not_the_one_around_it(pool: Pool) -> None:
    def helper() -> int:
        return pool.malloc(100)

    first, second = helper(), helper()
    assert owners(pool) == [f"{HERE}:{helper.__code__.co_firstlineno + 1}"] * 2
    pool.free(first)
    pool.free(second)


def test_the_tag_of_the_thread_comes_first(pool: Pool) -> None:
    outer = set_tag("loading")
    try:
        with pooled.use(pool):
            array = np.ones(1000)
    finally:
        set_tag(outer)
    assert owners(pool) == ["loading"]
    with pooled.use(pool):
        other = np.ones(1000)
    assert owners(pool)[1].startswith(HERE)
    del array, other


def test_the_lines_of_a_function_are_told_apart_and_each_is_one_owner(pool: Pool) -> None:
    kept = []
    with pooled.use(pool):
        for _ in range(5):
            kept.append(np.ones(1000))
            kept.append(np.ones(2000))
    first, second = sorted(set(owners(pool)), key=owners(pool).index)
    groups = {group.owner: (group.count, group.bytes) for group in pool.explain("1GiB").by_owner}
    assert groups == {first: (5, 5 * 8192), second: (5, 5 * 16128)}
    assert len(kept) == 10


def test_code_that_is_gone_gives_its_name_to_no_other_code(pool: Pool) -> None:
    for n in range(3000):
        scope: dict[str, Any] = {"pool": pool}
        exec(compile("\n" * (n % 50) + "block = pool.malloc(1)", f"made{n}.py", "exec"), scope)
        assert owners(pool) == [f"made{n}.py:{n % 50 + 1}"]
        pool.free(scope["block"])
    gc.collect()


def test_the_table_of_tags_keeps_a_bounded_number_of_codes(pool: Pool) -> None:
    import weakref

    alive: list[weakref.ref[CodeType]] = []
    for n in range(5000):
        code = compile("pool.free(pool.malloc(1))", f"made{n}.py", "exec")
        alive.append(weakref.ref(code))
        exec(code, {"pool": pool})
    del code
    gc.collect()
    assert sum(each() is not None for each in alive) <= 1024


def test_threads_have_their_own_lines(pool: Pool) -> None:
    kept: list[Any] = []

    def work() -> None:
        for _ in range(200):
            with pooled.use(pool):
                kept.append(np.ones(500))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(owners(pool)) == {f"{HERE}:{work.__code__.co_firstlineno + 3}"}


@pytest.fixture
def traced() -> Iterator[Callable[[], int]]:
    """Bytes that `tracemalloc` knows of in NumPy's domain."""
    tracemalloc.start(5)
    domain = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)

    def nbytes() -> int:
        traces = tracemalloc.take_snapshot().filter_traces([domain]).traces
        return sum(trace.size for trace in traces)

    try:
        yield nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("options", [{}, {"owner_tags": True}, {"guard": True}], ids=str)
def test_tracemalloc_sees_the_data_of_arrays_in_numpys_domain(
    traced: Callable[[], int], options: dict[str, Any]
) -> None:
    pool = Pool("256MiB", **options)
    before = traced()
    with pooled.use(pool):
        small = np.empty(10)
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        large = np.ones(10**6)
        assert traced() - before == 8_000_080
        large.resize(2 * 10**6, refcheck=False)
        assert traced() - before == 16_000_080
    traces = tracemalloc.take_snapshot().traces
    numpys = [trace for trace in traces if trace.domain == np.lib.tracemalloc_domain]
    assert [trace.size for trace in numpys if trace.traceback[-1].lineno == line] == [80]
    del small, large
    assert traced() == before


def test_tracemalloc_sees_nothing_of_what_a_pool_gives_out_itself(traced: Callable[[], int]) -> None:
    pool = Pool("16MiB")
    before = traced()
    with pool.allocate(1 << 20) as allocation:
        assert traced() == before
    del allocation
