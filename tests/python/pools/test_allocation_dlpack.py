"""Allocations as arrays of other libraries: DLPack both ways, and the CUDA array interface."""

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

from allotment import Allocation, InvalidFreeError, Pool
from support.cuda import check, run_on_stand_in


@pytest.fixture
def pool() -> Pool:
    return Pool("4MiB")


def test_numpy_has_the_memory_itself(pool: Pool) -> None:
    allocation = pool.allocate(1000)
    array = np.from_dlpack(allocation)
    assert array.dtype == np.uint8
    assert (array.shape, array.ctypes.data) == ((1000,), allocation.address)
    array[:] = 7
    assert bytes(memoryview(allocation)) == b"\7" * 1000
    assert allocation.__dlpack_device__() == (1, 0)


def test_a_view_keeps_the_memory_and_its_end_frees_it(pool: Pool) -> None:
    allocation = pool.allocate(1000)
    array = np.from_dlpack(allocation)
    part = array[10:20]
    with pytest.raises(BufferError, match="is still alive"):
        allocation.free()
    with pytest.raises(BufferError):
        pool.free(allocation.address)
    del allocation, array
    gc.collect()
    part[:] = 1
    assert pool.stats().num_live == 1
    del part
    assert pool.stats().num_live == 0


def test_memory_that_was_freed_has_no_view(pool: Pool) -> None:
    allocation = pool.allocate(1000)
    allocation.free()
    with pytest.raises(BufferError, match="this allocation was freed"):
        np.from_dlpack(allocation)
    with pytest.raises(InvalidFreeError):
        allocation.free()


def test_zero_bytes_are_an_array_without_elements(pool: Pool) -> None:
    assert np.from_dlpack(pool.allocate(0)).shape == (0,)


@pytest.mark.parametrize(
    ("version", "name"), [(None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned")]
)
def test_a_capsule_that_no_one_takes_frees_its_view(
    pool: Pool, version: tuple[int, int] | None, name: str
) -> None:
    allocation = pool.allocate(1000)
    capsule = allocation.__dlpack__(max_version=version)
    assert f'"{name}"' in repr(capsule)
    with pytest.raises(BufferError):
        allocation.free()
    del capsule
    allocation.free()


def test_a_consumer_without_versions_is_served(pool: Pool) -> None:
    class Old:
        """Hands over a capsule as older producers do."""

        def __init__(self, allocation: Allocation) -> None:
            self.allocation = allocation

        def __dlpack__(self, **_: Any) -> Any:
            return self.allocation.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.allocation.__dlpack_device__()

    array = np.from_dlpack(Old(pool.allocate(8)))
    assert array.shape == (8,)
    del array
    assert pool.stats().num_live == 0


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"copy": True}, BufferError, "copy=True"),
        ({"dl_device": (2, 0)}, BufferError, r"dl_device=\(2, 0\): the memory is on \(1, 0\)"),
        ({"stream": 1}, BufferError, "host memory has no streams"),
        ({"max_version": "new"}, TypeError, "max_version"),
    ],
)
def test_what_cannot_be_had_is_an_error_and_leaves_no_view(
    pool: Pool, options: Any, kind: type[Exception], text: str
) -> None:
    allocation = pool.allocate(8)
    with pytest.raises(kind, match=text):
        allocation.__dlpack__(**options)
    allocation.free()


def test_made_up_addresses_are_of_no_device() -> None:
    allocation = Pool("1MiB", source="address-space").allocate(8)
    for call in (allocation.__dlpack__, allocation.__dlpack_device__):
        with pytest.raises(BufferError, match="of no device that DLPack knows"):
            call()
    assert not hasattr(allocation, "__cuda_array_interface__")


def test_the_structs_have_the_layout_of_dlpack(pool: Pool) -> None:
    allocation = pool.allocate(1000)
    capsule = allocation.__dlpack__(max_version=(1, 3))
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    start = get(capsule, b"dltensor_versioned")
    assert start is not None
    # version, context, deleter, flags; then data, device, ndim, dtype, shape, strides, byte_offset.
    version = (ctypes.c_uint32 * 2).from_address(start)
    assert tuple(version) == (1, 1)
    assert ctypes.c_uint64.from_address(start + 24).value == 0
    assert ctypes.c_uint64.from_address(start + 32).value == allocation.address
    assert tuple((ctypes.c_int32 * 3).from_address(start + 40)) == (1, 0, 1)
    assert bytes((ctypes.c_uint8 * 4).from_address(start + 52)) == b"\1\10\1\0"
    shape = ctypes.c_uint64.from_address(start + 56).value
    assert ctypes.c_int64.from_address(shape).value == 1000
    assert ctypes.c_uint64.from_address(start + 72).value == 0


def test_memory_of_a_cuda_device_names_device_and_stream() -> None:
    check(
        run_on_stand_in(
            """
            import allotment
            enter_context()
            pool = allotment.Pool("4MiB", source="cuda:1")
            assert pool.allocate(8).__dlpack_device__() == (2, 1)
            a, b = create_stream(), create_stream()

            address = pool.malloc_on_stream(1000, a)
            work = queue_work(a)
            pool.free_on_stream(address, a)
            allocation = pool.allocate(1000)
            assert allocation.address == address and not is_behind(b, work)
            capsule = allocation.__dlpack__(stream=b, max_version=(1, 1), dl_device=(2, 1))
            assert is_behind(b, work), "the consumer's stream waits for those that freed memory"
            assert not is_behind(0, work)

            # Its view ends behind the work of its stream.
            work = queue_work(b)
            del capsule
            allocation.free()
            address = pool.malloc_on_stream(1000, a)
            assert is_behind(a, work)
            pool.free_on_stream(address, a)

            allocation = pool.allocate(1000)
            interface = allocation.__cuda_array_interface__
            assert interface == {"shape": (1000,), "typestr": "|u1", "data": (allocation.address, False),
                                 "strides": None, "version": 3, "stream": 1}, interface
            for stream in (None, 1, 2, -1):
                allocation.__dlpack__(stream=stream)
            for stream, kind, text in ((0, ValueError, "stream=0 is ambiguous"), (-2, ValueError, "stream=-2"),
                                       ("a", TypeError, "whole number"), (0xBAD, RuntimeError, "INVALID_HANDLE")):
                pool.free_on_stream(pool.malloc_on_stream(8, a), a)
                try:
                    allocation.__dlpack__(stream=stream)
                except kind as error:
                    assert text in str(error), error
                else:
                    raise AssertionError(stream)
            allocation.free()
            for view in ("__dlpack__", "__cuda_array_interface__"):
                try:
                    getattr(allocation, view)()
                except BufferError as error:
                    assert "was freed" in str(error)
            assert pool.stats().num_live == 0
            """,
            ALLOTMENT_STAND_IN_DEVICES="2",
        )
    )
