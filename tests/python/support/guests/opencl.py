"""A device of OpenCL, queues with commands that wait for the test, and arrays of known content."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest

from allotment import Pool
from support.pools.owners import in_use


def pyopencl() -> Any:
    """Return the module, after which kernels are not kept on disk; skip the test without it or without a device."""
    os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    cl = pytest.importorskip("pyopencl", reason="pyopencl is not installed")
    pytest.importorskip("pyopencl.array")
    if not devices(cl):
        pytest.skip("OpenCL lists no device: pip install pocl-binary-distribution", allow_module_level=True)
    return cl


def devices(cl: Any) -> list[Any]:
    try:
        return [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error:
        return []


def pyopencl_with_kernels() -> Any:
    """Return the module as ``pyopencl()`` does; skip the test if kernels cannot be compiled for this processor."""
    cl = pyopencl()
    if not compiles_kernels():
        pytest.skip("PoCL's compiler does not know this processor: unknown target CPU 'generic'")
    return cl


@cache
def compiles_kernels() -> bool:
    """Return whether the first device has a compiler that knows it: LLVM does not know processors newer than itself."""
    cl = pyopencl()
    context = cl.Context([devices(cl)[0]])
    try:
        cl.Program(context, "kernel void nothing() {}").build()
    except cl.RuntimeError as error:
        if "unknown target CPU 'generic'" not in str(error):
            raise
        return False
    return True


@contextmanager
def held_back(cl: Any, queue: Any) -> Iterator[Any]:
    """Yield an event for which the queue's commands wait that are added in the block; it is complete at its end."""
    gate = cl.UserEvent(queue.context)
    cl.enqueue_barrier(queue, wait_for=[gate])
    try:
        yield gate
    finally:
        if gate.command_execution_status != cl.command_execution_status.COMPLETE:
            gate.set_status(cl.command_execution_status.COMPLETE)


def filled(cl: Any, queue: Any, allocate: Any, nbytes: int, value: int) -> Any:
    """Return a buffer of a queue with one value in every byte."""
    buffer = allocate(nbytes)
    cl.enqueue_fill_buffer(queue, buffer, np.uint8(value), 0, nbytes)
    return buffer


def content(cl: Any, queue: Any, buffer: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the bytes of a buffer, after the commands of its queue."""
    array = np.empty(buffer.size, np.uint8)
    cl.enqueue_copy(queue, array, buffer)
    return array


def requested(pool: Pool, queue: Any, expected: int) -> int:
    """Return the requested bytes when they are those expected, or a while after the commands of a queue are done.

    A driver may destroy a buffer a moment after the last command that uses it.
    """
    queue.finish()
    deadline = time.monotonic() + 10
    while (found := pool.stats().requested) != expected and time.monotonic() < deadline:
        time.sleep(0.001)
    return found


def home(pool: Pool, queue: Any) -> int:
    """Return the bytes in use when there are none, or a while after the commands of a queue are done."""
    in_use(pool)
    requested(pool, queue, 0)
    return in_use(pool)
