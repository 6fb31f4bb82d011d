"""A device-memory manager: pools that hand out memory by best fit, under limits that hold."""

from allotment import compat, config, debugging, errors, experimental, test, testing
from allotment._core import (
    Allocation,
    Chunk,
    HostMemory,
    InvalidFreeError,
    OutOfMemoryError,
    Pool,
    PoolStats,
    Region,
    Snapshot,
    __version__,
)
from allotment.config import gpu
from allotment.device_spec import DeviceSpec
from allotment.source import Source

__all__ = [
    "Allocation",
    "Chunk",
    "DeviceSpec",
    "HostMemory",
    "InvalidFreeError",
    "OutOfMemoryError",
    "Pool",
    "PoolStats",
    "Region",
    "Snapshot",
    "Source",
    "__version__",
    "compat",
    "config",
    "debugging",
    "errors",
    "experimental",
    "gpu",
    "test",
    "testing",
]
