"""Numba's CUDA memory from a pool, through Numba's interface for external memory managers.

::

    from allotment.integrations import numba as pooled

    pooled.install(allotment.Pool("8GiB", source="cuda:0"))     # before Numba makes its first context
    x = numba.cuda.device_array(1000)                           # in the pool

Numba asks for a memory manager when it makes a device's context, so ``install`` comes first; it needs ``numba-cuda``.
Numba's simulator has no memory managers. Pinned and mapped memory of the host stays Numba's, devices without a pool get
Numba's own manager.

**Streams.** Numba does not say in which stream an array is used. Before the pool gives out memory after a free, the
host waits for the device, as Numba's own frees do. A refusal is ``allotment.OutOfMemoryError``, a ``MemoryError``.

Signatures are those of numba-cuda 0.30. Tested with stand-ins for Numba and the driver. It has not run on a GPU yet.
"""

from functools import partial
from typing import Any, Final

from allotment._core import Pool
from allotment.arrays.optional_package import find_attribute, load_package
from allotment.devices.device_tuples import LogicalDevice
from allotment.integrations.shared.installations import Installations
from allotment.integrations.shared.pool_argument import as_cuda_pool

_INSTALL: Final = "pip install numba-cuda[cu12] or numba-cuda[cu13], whichever the driver runs"
#: The version of Numba's interface for memory managers.
_INTERFACE_VERSION: Final = 1

_installed: Final = Installations("Numba")
uninstall: Final = _installed.uninstall
#: The pool of each device, for contexts that Numba makes from now on. For a device without one, Numba's manager serves.
_pools: Final[dict[int, Pool]] = {}


def _manager(numba_cuda: Any) -> Any:
    """Make the class that Numba instantiates for each context."""
    own = find_attribute(numba_cuda, "cudadrv.driver.NumbaCUDAMemoryManager", _INSTALL)
    pointer_class = find_attribute(numba_cuda, "MemoryPointer", _INSTALL)
    info_class = find_attribute(numba_cuda, "MemoryInfo", _INSTALL)
    address_class = find_attribute(
        load_package("cuda.bindings.driver", "a pool for Numba needs", _INSTALL), "CUdeviceptr", _INSTALL
    )

    class AllotmentMemoryManager(own):  # type: ignore[misc, valid-type]
        """Device memory from the pool of the context's device, all else as Numba's own manager does it."""

        def _pool(self) -> Pool | None:
            return _pools.get(self.context.device.id)

        def memalloc(self, size: int) -> Any:
            """Allocate device memory."""
            pool = self._pool()
            if pool is None:
                return super().memalloc(size)
            address = pool.malloc_on_stream(max(size, 1), None)
            free = partial(pool.free_on_stream, address, None)
            try:
                return pointer_class(self.context, address_class(address), size, finalizer=free)
            except BaseException:
                free()
                raise

        def get_memory_info(self) -> Any:
            """Return what the pool has left, and its limit."""
            pool = self._pool()
            if pool is None:
                return super().get_memory_info()
            stats = pool.stats()
            return info_class(free=stats.limit - stats.in_use, total=stats.limit)

        def get_ipc_handle(self, memory: Any) -> Any:
            """Return a handle for another process; an error for memory of a pool, which shares its regions."""
            if self._pool() is None:
                return super().get_ipc_handle(memory)
            raise NotImplementedError(
                "memory of a pool cannot be shared with another process by a handle of its own"
            )

        @property
        def interface_version(self) -> int:
            """The version of the interface that this class has."""
            return _INTERFACE_VERSION

    return AllotmentMemoryManager


def install(pool_or_device: Pool | LogicalDevice | str) -> None:
    """Let Numba take a device's memory from a pool, in contexts that it makes from now on. One call for each device.

    Args:
        pool_or_device: A pool over memory of a CUDA device, a logical device on one, or its name, such as "/GPU:0".

    Raises:
        ImportError: Numba or its CUDA part cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The pool is not over memory of a CUDA device.
        RuntimeError: Numba takes that device's memory from a pool already, has a context of the device, or has
            another version of the interface.
    """
    numba_cuda = load_package("numba.cuda", "a pool for Numba needs", _INSTALL)
    pool, device = as_cuda_pool(pool_or_device, "Numba")
    set_manager = find_attribute(numba_cuda, "set_memory_manager", _INSTALL)
    with _installed.add(device) as undo:
        if _has_context(numba_cuda, device):
            raise RuntimeError(
                f"Numba has a context of CUDA device {device} already, with a memory manager that it keeps: install() "
                "comes before the first use of numba.cuda, or after numba.cuda.close()"
            )
        set_manager(_manager(numba_cuda))
        _pools[device] = pool
        undo.callback(_pools.pop, device)


def _has_context(numba_cuda: Any, device: int) -> bool:
    driver = find_attribute(numba_cuda, "cudadrv.driver.driver", _INSTALL)
    # Looking at the devices would initialize the driver, or fail without one.
    if not driver.is_initialized or driver.initialization_error is not None:
        return False
    return numba_cuda.gpus[device].primary_context is not None


__all__ = ["install", "uninstall"]
