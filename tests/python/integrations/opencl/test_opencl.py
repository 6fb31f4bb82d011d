"""Buffers of OpenCL in pools: their bytes, refusals, arguments."""

import random
import sys
import time
from typing import Any

import numpy as np
import pytest

import allotment
from allotment import Pool
from allotment.integrations import opencl as pooled
from support.guests.opencl import content, filled, home, pyopencl, pyopencl_with_kernels, requested
from support.pools.owners import requested_by_owner

cl = pyopencl()
pytest_plugins = ["support.guests.opencl_fixtures"]
pytestmark = pytest.mark.usefixtures("nothing_stays_installed")


def test_arrays_are_in_the_pool_and_go_home(pool: Pool, queue: Any) -> None:
    pyopencl_with_kernels()
    import pyopencl.array

    allocate = pooled.allocator(pool, queue)
    values = np.arange(10_000, dtype=np.float32)
    a = pyopencl.array.to_device(queue, values, allocator=allocate)
    b = 2 * a + a
    assert requested_by_owner(pool)["opencl"] >= 2 * values.nbytes
    assert set(requested_by_owner(pool)) == {"opencl"}
    assert b.allocator is allocate
    np.testing.assert_array_equal(b.get(), 3 * values)
    part = b[100:200]
    del a, b
    np.testing.assert_array_equal(part.get(), 3 * values[100:200])
    del part
    assert home(pool, queue) == 0
    assert pool.trim() > 0
    assert pool.stats().reserved == 0


@pytest.mark.parametrize("nbytes", [1, 255, 256, 257, 5000, 1 << 20])
def test_a_buffer_has_the_bytes_of_its_request_at_an_offset_that_the_device_allows(
    nbytes: int, pool: Pool, queue: Any
) -> None:
    allocate = pooled.allocator(pool, queue)
    buffers = [allocate(nbytes) for _ in range(3)]
    step = queue.device.mem_base_addr_align // 8
    assert [buffer.size for buffer in buffers] == [nbytes] * 3
    assert all(buffer.offset % step == 0 for buffer in buffers)
    assert pool.stats().requested == 3 * nbytes
    with pytest.raises(cl.Error):
        cl.enqueue_fill_buffer(queue, buffers[0], np.uint8(0), 0, nbytes + 1)
    del buffers
    assert home(pool, queue) == 0


def test_no_bytes_are_no_buffer(pool: Pool, queue: Any) -> None:
    assert pooled.allocator(pool, queue)(0) is None
    assert pool.stats().num_allocs == 0


@pytest.mark.parametrize("nbytes", [-1, 1 << 64, 1.5, "a", None])
def test_what_is_no_number_of_bytes(nbytes: Any, pool: Pool, queue: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="nbytes"):
        pooled.allocator(pool, queue)(nbytes)


def test_buffers_share_no_byte(pool: Pool, queue: Any) -> None:
    allocate = pooled.allocator(pool, queue)
    numbers = random.Random(1)
    live: list[tuple[Any, int, int]] = []
    refused = 0
    for step in range(700):
        if live and numbers.random() < 0.4:
            buffer, value, nbytes = live.pop(numbers.randrange(len(live)))
            found = content(cl, queue, buffer)
            assert found.size == nbytes
            assert (found == value).all()
            del buffer
        else:
            nbytes, value = int(2 ** numbers.uniform(0, 21)), step % 251
            try:
                live.append((filled(cl, queue, allocate, nbytes, value), value, nbytes))
            except cl.MemoryError:
                refused += 1
        expected = sum(nbytes for _, _, nbytes in live)
        assert requested(pool, queue, expected) == expected
    assert refused > 0
    del live
    assert home(pool, queue) == 0


def test_a_refusal_is_pyopencls_memory_error_with_the_report(pool: Pool, queue: Any) -> None:
    import pyopencl.array

    allocate = pooled.allocator(pool, queue)
    kept = pyopencl.array.zeros(queue, 6 << 20, np.uint8, allocator=allocate)
    with pytest.raises(cl.MemoryError, match="pool 'guests': out of memory: asked for 12 MiB") as refused:
        pyopencl.array.zeros(queue, 12 << 20, np.uint8, allocator=allocate)
    assert refused.value.code == cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE
    cause = refused.value.__cause__
    assert isinstance(cause, allotment.OutOfMemoryError)
    assert (cause.requested, cause.live_requested) == (12 << 20, 6 << 20)
    with pytest.raises(cl.MemoryError, match="cannot allocate 9223372036854775807 bytes"):
        allocate((1 << 63) - 1)
    with pool.scope("small", limit="1MiB"), pytest.raises(cl.MemoryError, match="scope"):
        allocate(2 << 20)
    del kept, refused, cause
    assert home(pool, queue) == 0
    assert allocate(12 << 20).size == 12 << 20


def test_garbage_goes_before_a_request_is_refused(pool: Pool, queue: Any) -> None:
    allocate = pooled.allocator(pool, queue)
    cycle: list[Any] = [allocate(12 << 20)]
    cycle.append(cycle)
    del cycle
    assert allocate(12 << 20).size == 12 << 20


def test_a_region_for_which_the_device_has_no_buffer_is_refused(context: Any, queue: Any) -> None:
    most = queue.device.max_mem_alloc_size
    pool = Pool(4 * most, name="large", source=pooled.source(context))
    with pytest.raises(cl.MemoryError, match="pool 'large': out of memory") as refused:
        pooled.allocator(pool, queue)(most + (1 << 20))
    assert isinstance(refused.value.__cause__, allotment.OutOfMemoryError)
    assert refused.value.__cause__.verdict == "source"
    assert pool.stats().reserved == 0


def test_regions_are_not_joined_whatever_the_option_says(context: Any, queue: Any) -> None:
    pool = Pool("64MiB", source=pooled.source(context), joins_regions=True)
    allocate = pooled.allocator(pool, queue)
    buffers = [filled(cl, queue, allocate, 2 << 20, value) for value in range(20)]
    assert pool.stats().num_regions > 2
    for value, buffer in enumerate(buffers):
        assert (content(cl, queue, buffer) == value).all()


def test_what_a_pool_and_a_queue_are(context: Any, queue: Any) -> None:
    elsewhere = Pool("1MiB", source=pooled.source(cl.Context(context.devices)))
    for pool, given, kind, text in (
        (Pool("1MiB", source="address-space"), queue, ValueError, "OpenCL needs memory of the context"),
        (elsewhere, queue, ValueError, "that of another OpenCL context"),
        (5, queue, TypeError, "expected a Pool, a logical device"),
        (Pool("1MiB"), 5, TypeError, r"expected a pyopencl.Context or a pyopencl.CommandQueue, not int"),
    ):
        with pytest.raises(kind, match=text):
            pooled.allocator(pool, given)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not Pool"):
        pooled.source(Pool("1MiB"))  # type: ignore[arg-type]
    assert "OpenClSource(context=0x" in repr(pooled.source(queue))


def test_a_device_with_memory_of_its_own_does_not_work_in_a_pool_of_host_memory(
    queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyopencl.array

    monkeypatch.setattr(pooled, "_works_in_host_memory", lambda cl, device: False)
    pool = Pool("1MiB")
    with pytest.raises(
        ValueError, match="has memory of its own, and the pool is over memory of this process"
    ):
        pooled.allocator(pool, queue)
    with pooled.use(pool):
        assert pyopencl.array.zeros(queue, 10, np.uint8).get().sum() == 0
    assert pool.stats().num_allocs == 0


def test_a_logical_device_lends_its_pool(queue: Any) -> None:
    from allotment import testing

    with testing.runtime("1:64MiB"):
        buffer = filled(cl, queue, pooled.allocator("/GPU:0", queue), 1000, 3)
        assert (content(cl, queue, buffer) == 3).all()
        del buffer
        queue.finish()


def test_without_pyopencl_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    for attempt in (pooled.source, pooled.install, pooled.use):
        with pytest.raises(ImportError, match=r'pyopencl.*pip install "pyopencl\[pocl\]"'):
            attempt(Pool("1MiB"))  # type: ignore[arg-type]


def test_guard_mode_finds_what_a_kernel_writes_outside_of_its_buffer(queue: Any) -> None:
    pyopencl_with_kernels()
    pool = Pool("16MiB", guard=True)
    buffer = pooled.allocator(pool, queue)(1000)
    program = cl.Program(queue.context, "__kernel void past(__global char *a) { a[1000] = 1; }").build()
    program.past(queue, (1,), None, buffer)
    queue.finish()
    del program, buffer
    queue.finish()
    with pytest.raises(
        allotment.MemoryDamageError, match="was written to past its end, first at offset 1000"
    ):
        pool.allocate(1)


@pytest.mark.parametrize(
    ("options", "reserved"),
    # Caches keep chunks, which makes the pool grow once more.
    [({"growth": False}, 8 << 20), ({"thread_caches": True}, 8 << 20), ({"policy": "tight"}, 6 << 20)],
)
def test_options_of_a_pool_over_a_context(
    options: dict[str, Any], reserved: int, context: Any, queue: Any
) -> None:
    pool = Pool("8MiB", source=pooled.source(context), **options)
    allocate = pooled.allocator(pool, queue)
    buffers = [filled(cl, queue, allocate, 1000 * value, value) for value in range(1, 100)]
    assert all((content(cl, queue, buffer) == value).all() for value, buffer in enumerate(buffers, start=1))
    assert pool.stats().reserved == reserved
    del buffers
    assert home(pool, queue) == 0
    assert pool.trim() == reserved


@pytest.mark.parametrize("option", ["elastic", "guard"])
def test_options_that_need_other_memory(option: str, context: Any) -> None:
    options: dict[str, Any] = {option: True}
    with pytest.raises(ValueError, match=option):
        Pool("8MiB", source=pooled.source(context), **options)


def test_an_idle_pool_gives_its_regions_back(context: Any, queue: Any) -> None:
    pool = Pool("8MiB", source=pooled.source(context), idle_trim_seconds=0.05)
    buffer = pooled.allocator(pool, queue)(1000)
    assert pool.stats().reserved == 2 << 20
    del buffer
    queue.finish()
    deadline = time.monotonic() + 20
    while pool.stats().reserved > 0 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert pool.stats().reserved == 0
