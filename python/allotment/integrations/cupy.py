"""CuPy's memory from a pool, for any program that uses CuPy.

::

    from allotment.integrations import cupy as pooled

    pooled.install(allotment.Pool("8GiB", source="cuda:0"))     # every thread, from now on
    with pooled.use(other_pool):                                # this thread, while the block runs
        x = cupy.zeros(1000)

It sets CuPy's allocator; CuPy's own pool is not used, and blocks that it keeps from before go back with
``cupy.get_default_memory_pool().free_all_blocks()``. An array frees its memory with its last view, on any thread, after
``uninstall()`` too. A refusal is CuPy's ``OutOfMemoryError``, with the pool's report as a note and the pool's error as
its cause. Arrays on devices without a pool get their memory as before.

``allotment.arrays.cupy.PoolAllocator`` says what holds for streams. Kernels that were captured into a CUDA graph refer
to addresses: keep their arrays alive.

Tested with CuPy's wheel 14.2 without a GPU, and with stand-ins for CuPy and the driver. It has not run on a GPU yet.
"""

import threading
from collections.abc import Callable
from typing import Any, Final

from allotment._core import Pool
from allotment.arrays.cupy import PoolAllocator, load_cupy
from allotment.arrays.optional_package import find_attribute
from allotment.devices.device_tuples import LogicalDevice
from allotment.integrations.shared.block import Block
from allotment.integrations.shared.installations import Installations
from allotment.integrations.shared.pool_argument import as_cuda_pool

_INSTALL: Final = "pip install --upgrade cupy-cuda12x or cupy-cuda13x"

_installed: Final = Installations("CuPy")
uninstall: Final = _installed.uninstall


class _DeviceAllocator:
    """An allocator that serves one device from its pool, and the others as the former allocator does."""

    def __init__(self, cupy: Any, allocator: PoolAllocator) -> None:
        self._allocator: Final = allocator
        self._former: Final = find_attribute(cupy, "cuda.get_allocator", _INSTALL)()
        self._current_device: Final = find_attribute(cupy, "cuda.runtime.getDevice", _INSTALL)

    def __call__(self, nbytes: int) -> Any:
        is_ours = self._current_device() == self._allocator.device_id
        return (self._allocator if is_ours else self._former)(nbytes)


def install(pool_or_device: Pool | LogicalDevice | str) -> None:
    """Let CuPy take the memory of arrays made from now on, on any thread, from a pool. One call for each device.

    Args:
        pool_or_device: A pool over memory of a CUDA device, a logical device on one, or its name, such as "/GPU:0".

    Raises:
        ImportError: CuPy cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The pool is not over memory of a CUDA device.
        RuntimeError: CuPy takes that device's memory from a pool already.
    """
    cupy = load_cupy()
    pool, device = as_cuda_pool(pool_or_device, "CuPy")
    set_allocator = find_attribute(cupy, "cuda.set_allocator", _INSTALL)
    get_allocator = find_attribute(cupy, "cuda.get_allocator", _INSTALL)

    with _installed.add(device) as undo:
        ours: list[tuple[_DeviceAllocator, Any]] = []

        def change() -> None:
            allocator = _DeviceAllocator(cupy, PoolAllocator(pool, device))
            ours.append((allocator, get_allocator()))
            set_allocator(allocator)

        def restore() -> None:
            allocator, former = ours[0]
            # A program that has set another allocator meanwhile keeps it.
            if get_allocator() is allocator:
                set_allocator(former)

        _outside_of_blocks(change)
        undo.callback(_outside_of_blocks, restore)


def _outside_of_blocks(work: Callable[[], None]) -> None:
    """Run work in a thread of its own: in a block, CuPy neither tells nor changes what applies to all threads."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def use(pool_or_device: Pool | LogicalDevice | str) -> Block:
    """Return a context manager that lets CuPy take memory from a pool in its block, in this thread only. Blocks nest.

    Args:
        pool_or_device: A pool, a logical device or its name, as for ``install``.

    Raises:
        ImportError: CuPy cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The pool is not over memory of a CUDA device.
    """
    cupy = load_cupy()
    pool, device = as_cuda_pool(pool_or_device, "CuPy")
    using = find_attribute(cupy, "cuda.using_allocator", _INSTALL)
    return Block(lambda: using(_DeviceAllocator(cupy, PoolAllocator(pool, device))))


__all__ = ["install", "uninstall", "use"]
