"""RMM's memory from a pool: cuDF, cuML and others that allocate through RAPIDS Memory Manager.

::

    from allotment.integrations import rmm as pooled

    pooled.install(allotment.Pool("8GiB", source="cuda:0"))
    frame = cudf.DataFrame(...)                                  # in the pool

Each request calls Python (``rmm.mr.CallbackMemoryResource``): for libraries that allocate a few large buffers. A
refusal is RMM's ``MemoryError``, whose text has the pool's report.

Tested with RMM 26.10 without a GPU, and with stand-ins for RMM and the driver. It has not run on a GPU yet.
"""

import threading
from contextlib import ExitStack
from typing import Any, Final

from allotment._core import Pool
from allotment.arrays.optional_package import find_attribute, load_package
from allotment.devices.device_tuples import LogicalDevice
from allotment.integrations.shared.block import Block
from allotment.integrations.shared.installations import Installations, stream_handle
from allotment.integrations.shared.pool_argument import as_cuda_pool

_INSTALL: Final = "pip install rmm-cu12 or rmm-cu13, whichever the driver runs"

_installed: Final = Installations("RMM")
uninstall: Final = _installed.uninstall
#: Resources with live memory: RMM's C++ side refers to them without keeping them alive.
_kept: Final[set["_Callbacks"]] = set()


class _Callbacks:
    """A pool as the two functions of a ``CallbackMemoryResource``."""

    def __init__(self, pool: Pool, resource_class: Any) -> None:
        self._pool: Final = pool
        #: Held while the count changes, and what follows from it. Re-entrant: a finaliser may deallocate.
        self._lock: Final = threading.RLock()
        self._live = 0
        self.resource: Final = resource_class(self.allocate, self.deallocate)

    def allocate(self, nbytes: int, stream: Any) -> int:
        address = self._pool.malloc_on_stream(nbytes, stream_handle(stream))
        if address:
            with self._lock:
                self._live += 1
                _kept.add(self)
        return address

    def deallocate(self, address: int, nbytes: int, stream: Any) -> None:  # noqa: ARG002 - the pool knows the size
        self._pool.free_on_stream(address, stream_handle(stream))
        if address:
            with self._lock:
                self._live -= 1

    def drop_without_memory(self) -> None:
        """Keep the resource no longer if it has no live memory."""
        with self._lock:
            if not self._live:
                _kept.discard(self)


def _load_rmm() -> Any:
    return load_package("rmm", "a pool for RMM needs", _INSTALL)


def memory_resource(pool_or_device: Pool | LogicalDevice | str) -> Any:
    """Return a pool as an RMM memory resource, for programs that pass resources along.

    Raises:
        ImportError: RMM cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The pool is not over memory of a CUDA device.
    """
    pool, _device = as_cuda_pool(pool_or_device, "RMM")
    make = find_attribute(_load_rmm(), "mr.CallbackMemoryResource", _INSTALL)
    # Here, and not when the last buffer goes: that is a call of the resource itself.
    for callbacks in _kept.copy():
        callbacks.drop_without_memory()
    return _Callbacks(pool, make).resource


def install(pool_or_device: Pool | LogicalDevice | str) -> None:
    """Let RMM take the memory of a device from a pool from now on, on any thread. One call for each device.

    Args:
        pool_or_device: A pool over memory of a CUDA device, a logical device on one, or its name, such as "/GPU:0".

    Raises:
        ImportError: RMM cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The pool is not over memory of a CUDA device.
        RuntimeError: RMM takes that device's memory from a pool already.
    """
    rmm = _load_rmm()
    _pool, device = as_cuda_pool(pool_or_device, "RMM")
    with _installed.add(device) as undo:
        undo.enter_context(_serve(rmm, device, memory_resource(pool_or_device)))


def use(pool_or_device: Pool | LogicalDevice | str) -> Block:
    """Return a context manager that lets RMM take memory from a pool in its block, on all threads, as RMM's setting is.

    Args:
        pool_or_device: A pool, a logical device or its name, as for ``install``.

    Raises:
        ImportError: RMM cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The pool is not over memory of a CUDA device.
    """
    rmm = _load_rmm()
    _pool, device = as_cuda_pool(pool_or_device, "RMM")
    resource = memory_resource(pool_or_device)
    return Block(lambda: _serve(rmm, device, resource))


def _serve(rmm: Any, device: int, resource: Any) -> ExitStack:
    """Let a device have a resource; return what undoes it."""
    get_resource = find_attribute(rmm, "mr.get_per_device_resource", _INSTALL)
    set_resource = find_attribute(rmm, "mr.set_per_device_resource", _INSTALL)
    undo = ExitStack()
    undo.callback(set_resource, device, get_resource(device))
    set_resource(device, resource)
    return undo


__all__ = ["install", "memory_resource", "uninstall", "use"]
