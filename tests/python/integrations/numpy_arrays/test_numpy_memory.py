"""NumPy's arrays in a pool: one context's handler, from install to uninstall."""

import gc
import sys
from typing import Any

import numpy as np
import pytest

from allotment import OutOfMemoryError, Pool
from allotment.integrations import numpy as pooled
from support.pools.numpy_handlers import DEFAULT, OURS, CurrentHandler, address_of, handler_name

MIB = 1 << 20


def arrays_of_all_sizes() -> list["np.ndarray[Any, Any]"]:
    return [np.empty(n, np.uint8) for n in (0, 1, 1 << 10, MIB, 64 * MIB)]


def test_the_name_is_ours_exactly_between_install_and_uninstall(pool: Pool) -> None:
    before = np.empty(3)
    pooled.install(pool)
    arrays = arrays_of_all_sizes()
    assert [handler_name(a) for a in arrays] == [OURS] * 5
    assert handler_name() == OURS
    pooled.uninstall()
    after = np.empty(3)
    assert [handler_name(each) for each in (before, after, *arrays)] == [DEFAULT] * 2 + [OURS] * 5
    assert pool.stats().num_live == 5
    del arrays
    assert pool.stats().num_live == 0


def test_handlers_nest_and_the_former_one_comes_back(pool: Pool) -> None:
    inner = Pool("64MiB")
    with pooled.use(pool):
        first = np.empty(10)
        with pooled.use(inner):
            second = np.empty(10)
            with pooled.use(pool):
                third = np.empty(10)
            fourth = np.empty(10)
        fifth = np.empty(10)
    assert (pool.stats().num_live, inner.stats().num_live) == (3, 2)
    del second, fourth
    assert (pool.stats().num_live, inner.stats().num_live) == (3, 0)
    del first, third, fifth
    assert pool.stats().num_live == 0


def test_a_thousand_rounds_leave_no_reference_behind(pool: Pool) -> None:
    inner = Pool("256MiB")
    default = CurrentHandler().capsule

    def round_of_two() -> None:
        pooled.install(pool)
        arrays = arrays_of_all_sizes()
        with pooled.use(inner):
            arrays += arrays_of_all_sizes()
        pooled.uninstall()
        assert [handler_name(a) for a in arrays] == [OURS] * 10

    def counts() -> tuple[int, ...]:
        gc.collect()
        return (*(sys.getrefcount(each) for each in (pool, inner, default, None)), len(gc.get_objects()))

    round_of_two()
    before = counts()
    for _ in range(1000):
        round_of_two()
    grown = [after - earlier for earlier, after in zip(before, counts(), strict=True)]
    assert grown[:3] == [0, 0, 0]
    # The interpreter's own objects come and go.
    assert max(grown[3:]) < 100
    assert (pool.stats().num_live, inner.stats().num_live) == (0, 0)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError, StopIteration])
def test_the_former_handler_comes_back_after_an_exception(pool: Pool, error: type[BaseException]) -> None:
    with pooled.use(pool):
        with pytest.raises(error), pooled.use(Pool("1MiB")):
            raise error
        kept = np.empty(100)
    assert address_of(kept)
    assert pool.stats().num_live == 1
    assert handler_name() == DEFAULT


def test_a_handler_that_somebody_else_installed_comes_back(pool: Pool) -> None:
    from allotment._core import ArrayMemory

    theirs = Pool("1MiB")
    former = ArrayMemory(theirs).install()
    try:
        with pooled.use(pool):
            a = np.empty(10)
        b = np.empty(10)
    finally:
        ArrayMemory.restore(former)
    assert (pool.stats().num_live, theirs.stats().num_live) == (1, 1)
    del a, b
    assert (pool.stats().num_live, theirs.stats().num_live) == (0, 0)


def test_a_block_can_be_entered_again_inside_itself(pool: Pool) -> None:
    block = pooled.use(pool)
    with block, block:
        a = np.empty(1)
    assert handler_name() == DEFAULT
    with block:
        b = np.empty(1)
    assert (handler_name(a), handler_name(b)) == (OURS, OURS)


def test_a_block_ends_what_was_installed_inside_it(pool: Pool) -> None:
    with pooled.use(pool):
        pooled.install(Pool("1MiB"))
    assert handler_name() == DEFAULT


def test_a_block_left_in_another_context_changes_nothing_there(pool: Pool) -> None:
    import contextvars

    block = pooled.use(pool)
    contextvars.copy_context().run(block.__enter__)
    other = Pool("1MiB")
    with pooled.use(other):
        block.__exit__(None, None, None)
        a = np.empty(1)
    assert other.stats().num_live == 1
    del a


def test_misuse_is_an_error_that_says_what_to_do(pool: Pool) -> None:
    with pytest.raises(RuntimeError, match=r"install\(\) was not called"):
        pooled.uninstall()
    pooled.install(pool)
    with pytest.raises(RuntimeError, match=r"uninstall\(\) first"):
        pooled.install(Pool("1MiB"))
    assert handler_name() == OURS
    pooled.uninstall()
    with pooled.use(pool), pytest.raises(RuntimeError, match="ends by itself"):
        pooled.uninstall()


@pytest.mark.parametrize("wrong", [None, 3, b"/GPU:0", object(), Pool, ["GPU:0"]])
def test_what_is_neither_pool_nor_device_is_a_type_error(wrong: Any) -> None:
    for call in (pooled.install, pooled.use):
        with pytest.raises(TypeError, match="a Pool, a logical device or its name"):
            call(wrong)


@pytest.mark.parametrize(
    ("name", "words"),
    [("/GPU:99", "No matching devices"), ("", "has no pool"), ("CPU:0", "has no pool")],
)
def test_a_device_that_has_no_pool_or_is_not_there_is_a_value_error(name: str, words: str) -> None:
    for call in (pooled.install, pooled.use):
        with pytest.raises(ValueError, match=words):
            call(name)


def test_a_pool_of_made_up_addresses_is_refused() -> None:
    with pytest.raises(ValueError, match="memory of this process"):
        pooled.install(Pool("1MiB", source="address-space"))


def test_a_pool_without_room_for_one_array_is_not_installed() -> None:
    full = Pool("1MiB", growth=False)
    kept = full.malloc("1MiB")
    for process_wide in (False, True):
        with pytest.raises(MemoryError, match="first array") as refused:
            pooled.install(full, process_wide)
        assert isinstance(refused.value.__cause__, OutOfMemoryError)
        assert handler_name() == DEFAULT
    closed = Pool("1MiB")
    closed.close()
    with pytest.raises(MemoryError) as refused, pooled.use(closed):
        pass
    assert "closed" in str(refused.value.__cause__)
    full.free(kept)
