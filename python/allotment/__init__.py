"""A device-memory manager: pools that hand out memory by best fit, under limits that hold."""

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
from allotment.source import Source

__all__ = [
    "Allocation",
    "Chunk",
    "HostMemory",
    "InvalidFreeError",
    "OutOfMemoryError",
    "Pool",
    "PoolStats",
    "Region",
    "Snapshot",
    "Source",
    "__version__",
]
