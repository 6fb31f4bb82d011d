"""The memory of NVIDIA Warp's arrays from a pool.

::

    from allotment.integrations import warp as pooled

    pooled.install(allotment.Pool("8GiB", source="cuda:0"))
    x = warp.zeros(1000, device="cuda:0")                       # in the pool

Warp does not say in which stream an array is used. Its memory counts as used by the device's current stream, when it is
allocated and when it is freed: as with Warp's own pools, a program that uses an array in another stream keeps it alive
until that stream is done. Memory that is allocated while a CUDA graph is captured must stay alive as long as the graph.
A refusal is ``allotment.OutOfMemoryError``, a ``MemoryError``.

Signatures are those of Warp 1.19. Tested with stand-ins for Warp and the driver. It has not run on a GPU yet.
"""

from typing import Any, Final

from allotment._core import Pool
from allotment.arrays.optional_package import find_attribute, load_package
from allotment.devices.device_tuples import LogicalDevice
from allotment.integrations.shared.block import Block
from allotment.integrations.shared.installations import Installations, stream_handle
from allotment.integrations.shared.pool_argument import as_cuda_pool

_INSTALL: Final = "pip install 'warp-lang>=1.12'"

_installed: Final = Installations("Warp")
uninstall: Final = _installed.uninstall


class _Allocator:
    """A pool as an allocator of Warp's protocol."""

    def __init__(self, warp: Any, pool: Pool, device: int) -> None:
        self._pool: Final = pool
        self._device: Final = f"cuda:{device}"
        self._current_stream: Final = find_attribute(warp, "get_stream", _INSTALL)

    def allocate(self, size_in_bytes: int) -> int:
        """Allocate memory for work in the device's current stream."""
        stream = stream_handle(self._current_stream(self._device))
        return self._pool.malloc_on_stream(max(size_in_bytes, 1), stream)

    def deallocate(self, ptr: int, size_in_bytes: int) -> None:  # noqa: ARG002 - the pool knows the size
        """Free memory behind the work of the device's current stream."""
        self._pool.free_on_stream(ptr, stream_handle(self._current_stream(self._device)))


def _load_warp() -> Any:
    return load_package("warp", "a pool for Warp needs", _INSTALL)


def install(pool_or_device: Pool | LogicalDevice | str) -> None:
    """Let Warp take the memory of a device's arrays from a pool from now on, on any thread. One call for each device.

    Args:
        pool_or_device: A pool over memory of a CUDA device, a logical device on one, or its name, such as "/GPU:0".

    Raises:
        ImportError: Warp cannot be imported, or is older than custom allocators.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The pool is not over memory of a CUDA device.
        RuntimeError: Warp takes that device's memory from a pool already, or cannot use the device.
    """
    warp = _load_warp()
    pool, device = as_cuda_pool(pool_or_device, "Warp")
    set_allocator = find_attribute(warp, "set_device_allocator", _INSTALL)
    with _installed.add(device) as undo:
        set_allocator(f"cuda:{device}", _Allocator(warp, pool, device))
        undo.callback(set_allocator, f"cuda:{device}", None)


def use(pool_or_device: Pool | LogicalDevice | str) -> Block:
    """Return a context manager that lets Warp take a device's memory from a pool in its block, on all threads.

    Args:
        pool_or_device: A pool, a logical device or its name, as for ``install``.

    Raises:
        ImportError: Warp cannot be imported, or is older than custom allocators.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The pool is not over memory of a CUDA device.
    """
    warp = _load_warp()
    pool, device = as_cuda_pool(pool_or_device, "Warp")
    scoped = find_attribute(warp, "ScopedAllocator", _INSTALL)
    allocator = _Allocator(warp, pool, device)
    return Block(lambda: scoped(f"cuda:{device}", allocator))


__all__ = ["install", "uninstall", "use"]
