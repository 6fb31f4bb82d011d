"""A device-memory manager: pools, devices and limits. TensorFlow's names are in ``allotment.tf``.

Example::

    import allotment

    pool = allotment.Pool(limit="1GiB")
    with pool.allocate(3_000_000) as allocation:
        ...
"""

from typing import TYPE_CHECKING

import lazy_loader

from allotment import errors
from allotment._core import (
    Advice,
    Allocation,
    Chunk,
    Explanation,
    HostMemory,
    InvalidFreeError,
    KeptRegion,
    MemoryDamageError,
    OutOfMemoryError,
    OwnerGroup,
    Pool,
    PoolStats,
    Region,
    Scope,
    SizeGroup,
    Snapshot,
    Splitter,
    __version__,
)
from allotment.source import Source

if TYPE_CHECKING:
    from allotment import experimental, testing
else:
    _load, _, _modules = lazy_loader.attach(__name__, submodules=["experimental", "testing"])

    def __getattr__(name):
        """Import what is about devices when it is first used: a program with pools alone need not wait for it."""
        if name in _modules:
            return _load(name)
        raise AttributeError(
            f"module 'allotment' has no attribute {name!r}: it has pools and devices. TensorFlow's names are in "
            f"allotment.tf, TensorFlow 1's in allotment.tf.v1; write `import allotment.tf as tf`"
        )


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Advice",
    "Allocation",
    "Chunk",
    "Explanation",
    "HostMemory",
    "InvalidFreeError",
    "KeptRegion",
    "MemoryDamageError",
    "OutOfMemoryError",
    "OwnerGroup",
    "Pool",
    "PoolStats",
    "Region",
    "Scope",
    "SizeGroup",
    "Snapshot",
    "Source",
    "Splitter",
    "__version__",
    "errors",
    "experimental",
    "testing",
]
