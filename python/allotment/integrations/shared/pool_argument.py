"""Arguments of ``install`` and ``use``: a pool, a logical device that has one, or its name."""

from typing import Any

from allotment._core import Pool
from allotment.devices.context import context
from allotment.devices.device_tuples import LogicalDevice
from allotment.devices.logical import LogicalDeviceRuntime
from allotment.devices.memory.figures import find_device


def as_pool(pool_or_device: Any) -> Pool:
    """Return the pool that an argument means.

    Raises:
        TypeError: It is neither a pool nor a device.
        ValueError: The device does not exist or has no pool.
        RuntimeError: The pool was created before a fork, in the parent process.
    """
    if isinstance(pool_or_device, Pool):
        # Raises an error in a forked child, where no library can use the pool.
        pool_or_device.can_allocate(0)
        return pool_or_device
    device = as_device(pool_or_device, "a Pool, a logical device")
    if device.pool is None:
        name = getattr(pool_or_device, "name", pool_or_device)
        raise ValueError(
            f"device {name!r} has no pool: a GPU has one, and the CPU with TF_CPU_ALLOCATOR_USE_BFC=true"
        )
    return device.pool


def as_device(device: Any, accepted: str = "a logical device") -> LogicalDeviceRuntime:
    """Return the logical device that an argument means.

    Raises:
        TypeError: It is neither a device nor a text.
        ValueError: The device does not exist.
    """
    name = device.name if isinstance(device, LogicalDevice) else device
    if not isinstance(name, str):
        raise TypeError(f"expected {accepted} or its name, such as '/GPU:0', not {type(device).__name__}")
    return find_device(context().ready().devices, name)


def as_cuda_pool(pool_or_device: Any, library: str) -> tuple[Pool, int]:
    """Return the pool that an argument means, and the number of the CUDA device whose memory it is over.

    Raises:
        TypeError: It is neither a pool nor a device.
        ValueError: The device does not exist or has no pool, or the pool is over other memory.
        RuntimeError: The pool was created before a fork, in the parent process.
    """
    pool = as_pool(pool_or_device)
    device = pool.cuda_device
    if device is None:
        raise ValueError(
            f"{library} needs memory of a CUDA device, and the pool is over other memory: make one with "
            "Pool(limit, source='cuda:0'), or pass a logical device on a GPU that is not simulated"
        )
    return pool, device


__all__ = ["as_cuda_pool", "as_device", "as_pool"]
