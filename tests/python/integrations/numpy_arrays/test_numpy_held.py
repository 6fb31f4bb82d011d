"""NumPy's data in a pool is NumPy's to free: its address alone frees nothing, and its end frees nothing else."""

import ctypes
from typing import Any

import numpy as np
import pytest

from allotment import InvalidFreeError, Pool
from allotment.integrations import numpy as pooled
from support.pools.numpy_handlers import address_of, passes

MIB = 1 << 20


def array_of(pool: Pool, nbytes: int) -> "np.ndarray[Any, Any]":
    with pooled.use(pool):
        return np.full(nbytes, 7, np.uint8)


@pytest.mark.parametrize("options", [{}, {"guard": True}, {"owner_tags": True}, {"growth": False}], ids=str)
@pytest.mark.parametrize("nbytes", [1, 64, 1032, 1033, 4096, 3 * MIB])
def test_the_address_of_an_array_frees_nothing(nbytes: int, options: dict[str, Any]) -> None:
    pool = Pool("64MiB", **options)
    array = array_of(pool, nbytes)
    address = address_of(array)
    before = pool.stats().num_live
    for _ in range(2):
        with pytest.raises(
            BufferError, match=rf"{address:#x} has a buffer or an array over it: drop that first"
        ):
            pool.free(address)
    assert pool.stats().num_live == before
    # What would be a later owner's block is another one.
    blocks = [pool.malloc(nbytes) for _ in range(5)]
    assert address not in blocks
    for block in blocks:
        ctypes.memset(block, 1, nbytes)
    assert (array == 7).all()
    del array
    assert pool.stats().num_live == len(blocks)
    for block in blocks:
        pool.free(block)
    assert pool.stats().num_live == 0


def test_an_array_that_grew_is_still_held() -> None:
    pool = Pool("64MiB")
    array = array_of(pool, 100)
    array.resize(3 * MIB, refcheck=False)
    with pytest.raises(BufferError):
        pool.free(address_of(array))
    del array
    assert pool.stats().num_live == 0


def test_data_that_is_kept_for_the_next_array_cannot_be_freed_by_address() -> None:
    pool = Pool("64MiB")
    with pooled.use(pool):
        address = address_of(np.empty(64, np.uint8))
        with pytest.raises(InvalidFreeError, match=hex(address)):
            pool.free(address)
        again = np.empty(64, np.uint8)
    assert pool.stats().num_live == 1
    del again
    assert pool.stats().num_live == 0


def test_a_handler_frees_nothing_that_is_not_numpys() -> None:
    from support.pools.numpy_handlers import CurrentHandler

    pool = Pool("64MiB")
    with pooled.use(pool):
        handler = CurrentHandler()
    for nbytes in (64, 5000):
        theirs = pool.malloc(nbytes)
        handler.free(theirs, nbytes)
        assert pool.stats().num_live == 1
        pool.free(theirs)


def test_an_allocation_leaves_the_array_at_its_former_address_alone() -> None:
    pool = Pool("1MiB", growth=False)
    allocation = pool.allocate(MIB // 2 + 1)
    pool.free(allocation.address)
    with pooled.use(pool):
        pool.stats()  # has the small data of before given back
        array = np.empty(MIB // 2 + 1, np.uint8)
    array.fill(7)
    assert address_of(array) == allocation.address
    with pytest.raises(InvalidFreeError):
        allocation.free()
    del allocation
    assert array.min() == array.max() == 7
    assert pool.stats().num_live == 1


def test_a_buffer_over_an_allocation_and_other_allocations_go_their_own_ways() -> None:
    pool = Pool("64MiB")
    one, other = pool.allocate(1000), pool.allocate(1000)
    view = memoryview(one)
    with pytest.raises(BufferError):
        pool.free(one.address)
    with pytest.raises(BufferError):
        one.free()
    other.free()
    view.release()
    one.free()
    assert pool.stats().num_live == 0


def test_ids_are_those_of_before() -> None:
    pool = Pool("64MiB", growth=False)
    array = array_of(pool, 5000)
    held = [chunk for region in pool.snapshot().regions for chunk in region.chunks if chunk.in_use]
    kept = pool.kept_regions()
    assert [chunk.id for chunk in held] == [each.largest for each in kept]
    assert 0 < held[0].id < 100
    del array


def test_process_wide_arrays_are_held_too() -> None:
    passes(
        """
        pooled.install(pool, process_wide=True)
        a = np.ones(10**5)
        try:
            pool.free(a.ctypes.data)
        except BufferError:
            pass
        else:
            raise AssertionError("freed")
        block = pool.malloc(a.nbytes)
        assert block != a.ctypes.data and a.all()
        del a
        pool.free(block)
        """
    )


def test_a_tensor_on_a_simulated_device_is_held() -> None:
    passes(
        """
        import allotment
        import allotment.tf as tf
        from allotment.devices.context import context
        allotment.testing.simulate_gpus("1:64MiB")
        with tf.device("/GPU:0"):
            a = tf.ones([1000])
        device_pool = next(d.pool for d in context().ready().devices if d.kind == "GPU")
        address = a._array.ctypes.data
        try:
            device_pool.free(address)
        except BufferError:
            pass
        else:
            raise AssertionError("freed")
        assert (a.numpy() == 1).all()
        del a
        assert device_pool.stats().num_live == 0
        """
    )
