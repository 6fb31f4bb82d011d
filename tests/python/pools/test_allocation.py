"""Allocations: life and death, and the buffer over them."""

import gc

import numpy as np
import pytest

from allotment import Allocation, InvalidFreeError, Pool


@pytest.fixture
def pool() -> Pool:
    return Pool("64MiB")


def test_it_says_what_it_is(pool: Pool) -> None:
    a = pool.allocate(3_000_000)
    assert (a.requested, a.size, a.id) == (3_000_000, 4 << 20, 1)
    assert a.address % 256 == 0
    assert pool.allocate(10).id == 2
    assert "requested=3000000" in repr(a)
    with pytest.raises(AttributeError):
        a.size = 3  # type: ignore[misc]


def test_with_frees_once_and_free_inside_is_fine(pool: Pool) -> None:
    with pool.allocate(100) as a:
        assert pool.stats().num_live == 1
        assert isinstance(a, Allocation)
    assert pool.stats().num_live == 0
    assert "freed" in repr(a)
    with pool.allocate(100) as a:
        a.free()
    with pytest.raises(RuntimeError, match="mine"), pool.allocate(100):
        raise RuntimeError("mine")
    assert pool.stats().num_live == 0


def test_a_second_free_is_an_error(pool: Pool) -> None:
    a = pool.allocate(100)
    a.free()
    with pytest.raises(InvalidFreeError, match="freed before"):
        a.free()
    assert pool.stats().num_live == 0


def test_the_last_reference_frees(pool: Pool) -> None:
    a = pool.allocate(100)
    other = a
    del a
    assert pool.stats().num_live == 1
    del other
    assert pool.stats().num_live == 0


def test_a_cycle_frees_when_it_is_collected(pool: Pool) -> None:
    gc.disable()
    try:
        cycle: list[object] = [pool.allocate(100)]
        cycle.append(cycle)
        del cycle
        assert pool.stats().num_live == 1
        gc.collect()
        assert pool.stats().num_live == 0
    finally:
        gc.enable()


def test_garbage_is_collected_before_memory_is_refused() -> None:
    pool = Pool("1MiB", growth=False, collect_garbage=True)
    gc.disable()
    try:
        cycle: list[object] = [pool.allocate("1MiB")]
        cycle.append(cycle)
        del cycle
        pool.free(pool.malloc("1MiB"))
        assert pool.stats().num_refused == 0
    finally:
        gc.enable()


def test_freeing_its_address_elsewhere_never_hits_the_next_owner(pool: Pool) -> None:
    a = pool.allocate(100)
    pool.free(a.address)
    heir = pool.malloc(100)
    assert heir == a.address
    with pytest.raises(InvalidFreeError):
        a.free()
    assert pool.stats().num_live == 1

    b = pool.allocate(100)
    pool.free(b.address)
    second_heir = pool.malloc(100)
    del b
    assert pool.stats().num_live == 2
    pool.free(heir)
    pool.free(second_heir)


def test_an_array_over_it_is_its_memory(pool: Pool) -> None:
    a = pool.allocate(4000)
    array = np.frombuffer(a, np.float32)
    assert array.shape == (1000,)
    assert array.ctypes.data == a.address
    array[:] = np.arange(1000)
    assert np.frombuffer(a, np.float32)[999] == 999
    view = memoryview(a)
    assert (view.nbytes, view.readonly, view.format) == (4000, False, "B")


def test_it_cannot_be_freed_under_an_array(pool: Pool) -> None:
    a = pool.allocate(4000)
    array = np.frombuffer(a, np.uint8)
    with pytest.raises(BufferError, match="still alive"):
        a.free()
    array[:] = 9
    del array
    a.free()
    with pytest.raises(BufferError, match="freed"):
        memoryview(a)
    assert pool.stats().num_live == 0


def test_an_array_outlives_every_name(pool: Pool) -> None:
    array = np.frombuffer(pool.allocate(4000), np.uint8)
    del pool
    gc.collect()
    array[:] = 5
    assert array.sum() == 20_000


def test_leaving_with_under_an_array_is_an_error_and_the_memory_stays(pool: Pool) -> None:
    with pytest.raises(BufferError), pool.allocate(4000) as a:
        array = np.frombuffer(a, np.uint8)
    array[:] = 1
    del array, a
    assert pool.stats().num_live == 0


def test_an_exception_of_the_block_is_not_hidden_by_an_array_it_leaves_behind(pool: Pool) -> None:
    arrays = []

    def leave_an_array() -> None:
        with pool.allocate(4000) as a:
            arrays.append(np.frombuffer(a, np.uint8))
            raise KeyError("mine")

    with pytest.raises(KeyError):
        leave_an_array()
    assert pool.stats().num_live == 1
    arrays.clear()
    assert pool.stats().num_live == 0


def test_its_memory_cannot_be_freed_by_its_address_under_an_array(pool: Pool) -> None:
    a = pool.allocate(4000)
    array = np.frombuffer(a, np.uint8)
    with pytest.raises(BufferError, match="array over it"):
        pool.free(a.address)
    array[:] = 1
    del array
    pool.free(a.address)
    with pytest.raises(BufferError, match="freed"):
        memoryview(a)
    assert pool.stats().num_live == 0


@pytest.mark.parametrize("alignment", [256, 512, 4096])
def test_its_size_ends_with_its_chunk(pool: Pool, alignment: int) -> None:
    for _ in range(20):
        a = pool.allocate(100, alignment=alignment)
        pool.malloc(256)
        (chunk,) = [k for r in pool.snapshot().regions for k in r.chunks if k.id == a.id]
        assert a.address + a.size == chunk.address + chunk.size
        assert a.size >= 100
        a = pool.allocate(1)
        pool.malloc(1)
        del a


def test_a_pool_takes_no_allocation_object_for_an_address(pool: Pool) -> None:
    with pytest.raises(TypeError, match=r"its own free\(\)"):
        pool.free(pool.allocate(1))  # type: ignore[arg-type]


def test_made_up_addresses_have_no_buffer() -> None:
    with Pool("1GiB", source="address-space").allocate(100) as a, pytest.raises(BufferError, match="host"):
        memoryview(a)


def test_a_large_count_of_views_comes_back_to_none(pool: Pool) -> None:
    a = pool.allocate(16)
    views = [memoryview(a) for _ in range(10_000)]
    with pytest.raises(BufferError):
        a.free()
    del views
    a.free()
