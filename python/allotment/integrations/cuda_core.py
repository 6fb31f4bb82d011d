"""Memory of NVIDIA's ``cuda.core`` from a pool.

::

    from allotment.integrations import cuda_core as pooled

    resource = pooled.memory_resource(allotment.Pool("8GiB", source="cuda:0"))
    buffer = resource.allocate(1 << 20, stream=stream)          # freed behind the work of the stream
    pooled.install(pool)                                        # or for Device(0).allocate(...) of this thread

A refusal is ``allotment.OutOfMemoryError``, a ``MemoryError``.

Signatures are those of cuda-core 1.2. Tested with stand-ins for cuda.core and the driver. It has not run on a GPU yet.
"""

from contextlib import ExitStack
from typing import Any, Final

from allotment._core import Pool
from allotment.arrays.optional_package import find_attribute, load_package
from allotment.devices.device_tuples import LogicalDevice
from allotment.integrations.shared.block import Block
from allotment.integrations.shared.installations import Installations, stream_handle
from allotment.integrations.shared.pool_argument import as_cuda_pool

_INSTALL: Final = "pip install 'cuda-core[cu12]>=1.0' or 'cuda-core[cu13]>=1.0', whichever the driver runs"

_installed: Final = Installations("cuda.core")
uninstall: Final = _installed.uninstall


def memory_resource(pool_or_device: Pool | LogicalDevice | str) -> Any:
    """Return a pool as a ``cuda.core.MemoryResource``.

    Raises:
        ImportError: cuda.core cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The pool is not over memory of a CUDA device.
    """
    return _make(*as_cuda_pool(pool_or_device, "cuda.core"))


def _load_cuda_core() -> Any:
    return load_package("cuda.core", "a pool for cuda.core needs", _INSTALL)


def _make(pool: Pool, device: int) -> Any:
    """Make a memory resource of cuda.core over a pool."""
    core = _load_cuda_core()
    base: Any = find_attribute(core, "MemoryResource", _INSTALL)
    from_handle = find_attribute(core, "Buffer.from_handle", _INSTALL)

    class AllotmentMemoryResource(base):  # type: ignore[misc]
        """Device memory from a pool."""

        def allocate(self, size: int, *, stream: Any) -> Any:
            """Allocate a buffer for work in a stream."""
            address = pool.malloc_on_stream(max(size, 1), stream_handle(stream))
            try:
                return from_handle(address, size, mr=self, stream=stream)
            except BaseException:
                pool.free_on_stream(address, stream_handle(stream))
                raise

        def deallocate(self, ptr: Any, size: int, *, stream: Any) -> None:  # noqa: ARG002 - the pool knows the size
            """Free a buffer behind the work of a stream."""
            pool.free_on_stream(int(ptr), stream_handle(stream))

        @property
        def device_id(self) -> int:
            """The number of the device."""
            return device

        @property
        def is_device_accessible(self) -> bool:
            """Whether kernels can use the memory: yes."""
            return True

        @property
        def is_host_accessible(self) -> bool:
            """Whether the host can use the memory: no."""
            return False

        @property
        def is_managed(self) -> bool:
            """Whether the memory moves between host and device: no."""
            return False

    return AllotmentMemoryResource()


def install(pool_or_device: Pool | LogicalDevice | str) -> None:
    """Let ``cuda.core.Device(n).allocate`` of this thread take memory from a pool. One call for each device.

    cuda.core has an object for each device and thread; other threads keep what they have.

    Args:
        pool_or_device: A pool over memory of a CUDA device, a logical device on one, or its name, such as "/GPU:0".

    Raises:
        ImportError: cuda.core cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The pool is not over memory of a CUDA device.
        RuntimeError: cuda.core takes that device's memory from a pool already.
    """
    pool, device = as_cuda_pool(pool_or_device, "cuda.core")
    resource = _make(pool, device)
    with _installed.add(device) as undo:
        owner = find_attribute(_load_cuda_core(), "Device", _INSTALL)(device)
        undo.enter_context(_serve(owner, resource))


def use(pool_or_device: Pool | LogicalDevice | str) -> Block:
    """Return a context manager that lets this thread's ``cuda.core.Device(n).allocate`` take memory from a pool.

    Args:
        pool_or_device: A pool, a logical device or its name, as for ``install``.

    Raises:
        ImportError: cuda.core cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The pool is not over memory of a CUDA device.
    """
    pool, device = as_cuda_pool(pool_or_device, "cuda.core")
    resource = _make(pool, device)
    owner = find_attribute(_load_cuda_core(), "Device", _INSTALL)(device)
    return Block(lambda: _serve(owner, resource))


def _serve(owner: Any, resource: Any) -> ExitStack:
    """Let a device have a resource; return what undoes it."""
    undo = ExitStack()
    undo.callback(setattr, owner, "memory_resource", owner.memory_resource)
    owner.memory_resource = resource
    return undo


__all__ = ["install", "memory_resource", "uninstall", "use"]
