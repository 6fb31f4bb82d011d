"""Lifetimes of OpenCL's buffers, their pools, threads and processes."""

import random
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from allotment import Pool
from allotment.integrations import opencl as pooled
from support.child import run_program
from support.guests.opencl import content, filled, home, pyopencl, requested

cl = pyopencl()
pytest_plugins = ["support.guests.opencl_fixtures"]
pytestmark = pytest.mark.usefixtures("nothing_stays_installed")


def test_buffers_outlive_their_pool_and_its_allocator(context: Any, queue: Any) -> None:
    for source in (pooled.source(context), "host"):
        pool = Pool("16MiB", source=source)
        buffer = filled(cl, queue, pooled.allocator(pool, queue), 5000, 7)
        pool.close()
        del pool
        assert (content(cl, queue, buffer) == 7).all()


def test_a_closed_pool_refuses_and_says_so(pool: Pool, queue: Any) -> None:
    allocate = pooled.allocator(pool, queue)
    buffer = allocate(100)
    pool.close()
    with pytest.raises(ValueError, match="closed"):
        allocate(100)
    del buffer
    assert home(pool, queue) == 0


def test_a_reference_of_opencl_alone_keeps_the_memory(pool: Pool, queue: Any) -> None:
    buffer = pooled.allocator(pool, queue)(1000)
    second = cl.Buffer.from_int_ptr(buffer.int_ptr, True)
    del buffer
    assert requested(pool, queue, 1000) == 1000
    del second
    assert home(pool, queue) == 0


def test_four_threads_make_and_drop_buffers_of_one_pool(pool: Pool, context: Any) -> None:
    def work(seed: int) -> int:
        queue = cl.CommandQueue(context)
        allocate = pooled.allocator(pool, queue)
        numbers, live, refused = random.Random(seed), [], 0
        for step in range(200):
            value = step % 251
            try:
                live.append((filled(cl, queue, allocate, int(2 ** numbers.uniform(0, 20)), value), value))
            except cl.MemoryError:
                refused += 1
            if len(live) > 8 or refused:
                buffer, value = live.pop(numbers.randrange(len(live))) if live else (None, 0)
                assert buffer is None or (content(cl, queue, buffer) == value).all()
        queue.finish()
        return refused

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert home(pool, cl.CommandQueue(context)) == 0


def test_a_buffer_is_dropped_on_another_thread(pool: Pool, queue: Any) -> None:
    things = [pooled.allocator(pool, queue)(1000)]
    thread = threading.Thread(target=things.clear)
    thread.start()
    thread.join()
    assert home(pool, queue) == 0


def test_freeing_by_address_is_an_error(pool: Pool, queue: Any) -> None:
    buffer = pooled.allocator(pool, queue)(1000)
    (address,) = (
        chunk.address for region in pool.snapshot().regions for chunk in region.chunks if chunk.in_use
    )
    with pytest.raises(BufferError):
        pool.free(address)
    del buffer
    assert home(pool, queue) == 0


PROGRAM = """
import os, sys
os.environ["PYOPENCL_NO_CACHE"] = "1"
sys.path[:0] = {path!r}
import numpy as np
import pyopencl as cl
import pyopencl.array
import allotment
from allotment.integrations import opencl as pooled

context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
queue = cl.CommandQueue(context)
pool = allotment.Pool("16MiB", source=pooled.source(context))
host = allotment.Pool("16MiB")
allocate = pooled.allocator(pool, queue)
"""

ENDS = {
    "arrays are alive": """
        pooled.install(pool)
        kept = [pyopencl.array.zeros(queue, 1000, np.float32), allocate(100), pooled.allocator(host, queue)(10)]
    """,
    "arrays are alive in cycles": """
        cycle = [allocate(100), pooled.allocator(host, queue)(10)]
        cycle.append(cycle)
    """,
    "a command never runs": """
        gate = cl.UserEvent(context)
        buffer, other = allocate(100), pooled.allocator(host, queue)(100)
        for each in (buffer, other):
            cl.enqueue_fill_buffer(queue, each, np.uint8(1), 0, 100, wait_for=[gate])
        del each, buffer, other
    """,
    "the pool is closed": """
        buffer = allocate(100)
        pool.close()
    """,
    "in a forked child": """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads of OpenCL
        buffer, other = allocate(100), pooled.allocator(host, queue)(100)
        if (child := os.fork()) == 0:
            attempts = (lambda: allocate(100), lambda: pooled.allocator(host, queue), lambda: pooled.use(pool))
            for attempt in attempts:
                try:
                    attempt()
                except RuntimeError as error:
                    assert "fork" in str(error), error
                else:
                    os._exit(3)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        del buffer, other
        assert pool.stats().in_use == host.stats().in_use == 0
    """,
}


@pytest.mark.parametrize("name", ENDS)
def test_the_end_of_the_process_is_silent(name: str) -> None:
    done = run_program(PROGRAM.format(path=sys.path) + textwrap.dedent(ENDS[name]))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
