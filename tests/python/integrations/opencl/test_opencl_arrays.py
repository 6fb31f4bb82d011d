"""Arrays of pyopencl that are made without an allocator, in pools."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from allotment import Pool
from allotment.integrations import opencl as pooled
from support.guests.opencl import home, pyopencl

cl = pyopencl()
pytest_plugins = ["support.guests.opencl_fixtures"]
pytestmark = pytest.mark.usefixtures("nothing_stays_installed")


def test_a_block_applies_to_its_thread_and_an_installation_to_all(pool: Pool, queue: Any) -> None:
    import pyopencl.array

    def zeros() -> Any:
        return pyopencl.array.zeros(queue, 1000, np.uint8)

    outer = Pool("4MiB", name="outer")
    with ThreadPoolExecutor(1) as other:
        with pooled.use(pool):
            here, there = zeros(), other.submit(zeros).result()
            copied = here.copy()
        assert (pool.stats().requested, outer.stats().requested) == (2000, 0)
        pooled.install(outer)
        with pytest.raises(RuntimeError, match="is in a pool already"):
            pooled.install(pool)
        with pooled.use(pool):
            within, without = zeros(), other.submit(zeros).result()
        assert (pool.stats().requested, outer.stats().requested) == (3000, 1000)
        after = here.copy()
        assert outer.stats().requested == 2000
        pooled.uninstall()
    last = zeros()
    assert outer.stats().requested == 2000
    with pytest.raises(RuntimeError, match="nothing to uninstall"):
        pooled.uninstall()
    assert all(array.allocator is None for array in (here, copied, within, after, last))
    del here, there, copied, within, without, after
    assert home(pool, queue) == home(outer, queue) == 0


def test_blocks_nest_and_give_back_what_a_program_chose(pool: Pool, queue: Any) -> None:
    import pyopencl.array

    inner, own = Pool("4MiB"), Pool("4MiB")
    with pooled.use(pool):
        with pooled.use(inner):
            a = pyopencl.array.empty(queue, 1, np.int64)
            b = pyopencl.array.empty(queue, 1, np.int64, allocator=pooled.allocator(own, queue))
        c = pyopencl.array.empty(queue, 1, np.int64)
        view = pyopencl.array.Array(queue, 1, np.int64, data=c.data)
    figures = [each.stats().requested for each in (pool, inner, own)]
    assert figures == [8, 8, 8]
    assert view.allocator is None
    del a, b, c, view
    assert home(pool, queue) == home(inner, queue) == home(own, queue) == 0


def test_a_context_with_the_handle_of_one_that_was_not_served_is_served(
    queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyopencl.array

    pool = Pool("4MiB")
    with pooled.use(pool):
        with monkeypatch.context() as patched:
            # The former context at this address: its device has memory of its own.
            patched.setattr(pooled, "_works_in_host_memory", lambda _cl, _device: False)
            pyopencl.array.empty(queue, 100, np.uint8)
            assert pool.stats().num_allocs == 0
        pyopencl.array.empty(queue, 100, np.uint8)
        assert pool.stats().num_allocs == 1


def test_arrays_without_a_queue_and_of_another_context(context: Any, queue: Any) -> None:
    import pyopencl.array

    other = cl.Context(context.devices)
    pool = Pool("4MiB", source=pooled.source(context))
    with pooled.use(pool):
        without_queue = pyopencl.array.empty(context, 100, np.uint8)
        assert pool.stats().requested == 100
        elsewhere = pyopencl.array.empty(other, 100, np.uint8)
        assert pool.stats().requested == 100
        copied = without_queue.with_queue(queue).copy()
        assert pool.stats().requested == 200
    host = Pool("4MiB")
    with pooled.use(host):
        both = [pyopencl.array.empty(each, 100, np.uint8) for each in (context, other)]
        assert host.stats().requested == 200
    queue.finish()
    del without_queue, elsewhere, copied, both
    assert home(pool, queue) == home(host, queue) == 0


def test_a_block_that_raises_ends() -> None:
    pool = Pool("4MiB")
    with pytest.raises(KeyError), pooled.use(pool):
        raise KeyError
