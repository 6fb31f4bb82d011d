"""Memory of OpenCL that is free while queued commands still use it."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from allotment import Pool
from allotment.integrations import opencl as pooled
from support.guests.opencl import content, filled, held_back, home, pyopencl, pyopencl_with_kernels, requested

cl = pyopencl()
pytest_plugins = ["support.guests.opencl_fixtures"]
pytestmark = pytest.mark.usefixtures("nothing_stays_installed")


def after_reuse(pool: Pool, first: Any, second: Any) -> np.ndarray[Any, Any]:
    """Drop a buffer that a command of one queue still reads, and have another one overwrite its memory.

    Return what the command read.
    """
    nbytes = 1 << 20
    read = cl.Buffer(first.context, cl.mem_flags.READ_WRITE, nbytes)
    here = pooled.allocator(pool, first)
    there = pooled.allocator(pool, second)
    dropped = filled(cl, first, here, nbytes, 1)
    first.finish()
    with held_back(cl, first):
        cl.enqueue_copy(first, read, dropped)
        del dropped
        reused = filled(cl, second, there, nbytes, 2)
        second.flush()
    second.finish()
    result = content(cl, first, read)
    assert (content(cl, second, reused) == 2).all()
    return result


def test_commands_of_the_same_queue_run_behind_those_that_used_the_memory_before(
    pool: Pool, queue: Any
) -> None:
    assert (after_reuse(pool, queue, queue) == 1).all()
    assert home(pool, queue) == 0


def test_another_queue_waits_for_the_one_that_used_the_memory_before(pool: Pool, context: Any) -> None:
    first, second = cl.CommandQueue(context), cl.CommandQueue(context)
    assert (after_reuse(pool, first, second) == 1).all()
    assert (after_reuse(pool, second, first) == 1).all()
    assert home(pool, first) == 0


def test_the_program_waits_for_a_queue_of_another_context(queue: Any) -> None:
    pool = Pool("16MiB")
    other = cl.CommandQueue(cl.Context(queue.context.devices))
    here, there = pooled.allocator(pool, queue), pooled.allocator(pool, other)
    dropped, kept = (filled(cl, queue, here, 1000, 1) for _ in range(2))
    del dropped
    assert requested(pool, queue, 1000) == 1000
    with held_back(cl, queue) as gate, ThreadPoolExecutor(1) as thread:
        cl.enqueue_fill_buffer(queue, kept, np.uint8(2), 0, 1000)
        waiting = thread.submit(filled, cl, other, there, 1000, 3)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.1)
        # Others need not wait meanwhile.
        assert pooled.allocator(pool, queue)(1000).size == 1000
        gate.set_status(cl.command_execution_status.COMPLETE)
        made = waiting.result(timeout=30)
    assert (content(cl, other, made) == 3).all()
    assert (content(cl, queue, kept) == 2).all()


def test_arrays_of_two_contexts_share_an_installed_pool(queue: Any) -> None:
    pyopencl_with_kernels()
    import pyopencl.array

    pool = Pool("16MiB")
    queues = [queue, cl.CommandQueue(cl.Context(queue.context.devices))]
    with pooled.use(pool):
        for _ in range(3):
            for each in queues:
                array = pyopencl.array.zeros(each, 1000, np.uint8) + 1
                assert (array.get() == 1).all()
                del array
    assert pool.stats().num_allocs == 12


def test_a_queue_without_an_order_waits_for_itself(pool: Pool, context: Any) -> None:
    unordered = cl.CommandQueue(context, properties=cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    assert (after_reuse(pool, unordered, unordered) == 1).all()
    assert home(pool, unordered) == 0


def test_the_program_waits_if_no_queue_is_known(context: Any, queue: Any) -> None:
    pool = Pool("16MiB", source=pooled.source(context))
    for_any = pooled.allocator(pool, context)
    allocate = pooled.allocator(pool, queue)
    dropped = filled(cl, queue, allocate, 1000, 1)
    with held_back(cl, queue) as gate, ThreadPoolExecutor(1) as other:
        cl.enqueue_fill_buffer(queue, dropped, np.uint8(2), 0, 1000)
        queue.flush()
        del dropped
        waiting = other.submit(for_any, 1000)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.1)
        gate.set_status(cl.command_execution_status.COMPLETE)
        assert waiting.result(timeout=30).size == 1000


def test_the_reuse_would_be_seen_without_an_order(context: Any) -> None:
    """The same with two pools of memory that is one: nothing orders them, so the command reads what comes later."""
    first, second = cl.CommandQueue(context), cl.CommandQueue(context)
    memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, 1000)
    read = cl.Buffer(context, cl.mem_flags.READ_WRITE, 1000)
    cl.enqueue_fill_buffer(first, memory, np.uint8(1), 0, 1000)
    first.finish()
    with held_back(cl, first):
        cl.enqueue_copy(first, read, memory)
        cl.enqueue_fill_buffer(second, memory, np.uint8(2), 0, 1000)
        second.finish()
    assert (content(cl, first, read) == 2).all()


@pytest.mark.parametrize("times", range(3))
def test_a_request_waits_for_commands_before_it_is_refused(times: int, pool: Pool, queue: Any) -> None:
    allocate = pooled.allocator(pool, queue)
    dropped = filled(cl, queue, allocate, 12 << 20, 1)
    with held_back(cl, queue) as gate, ThreadPoolExecutor(1) as other:
        cl.enqueue_fill_buffer(queue, dropped, np.uint8(2), 0, 12 << 20)
        queue.flush()
        del dropped
        waiting = other.submit(allocate, 12 << 20)
        gate.set_status(cl.command_execution_status.COMPLETE)
        assert waiting.result(timeout=30).size == 12 << 20
