"""Puts pyarrow's buffers into a pool: arrays, tables, results of compute functions, files that are read.

::

    from allotment.integrations import pyarrow as pooled

    pooled.install(pool)                                    # pyarrow's default memory pool from here on
    table = pyarrow.parquet.read_table("data.parquet")
    pyarrow.array(values, memory_pool=pooled.memory_pool(other))    # one call

A buffer goes back to its pool when pyarrow drops it, on any thread, also after ``uninstall()``. Buffers that pyarrow
does not allocate stay where they are: those over NumPy arrays, memory maps and data from other libraries.

**Running out of memory.** pyarrow raises its own ``ArrowMemoryError``, a ``MemoryError``, whose text is the pool's
report. A request neither waits for a free nor collects garbage first.

**Threads and processes.** pyarrow has one default memory pool per process, so ``install`` and ``use`` apply to every
thread. In a forked child the allotment pool belongs to the parent: buffers get memory of the C library. The pool
lives as long as the process.

**Requirements.** A C++20 compiler, such as the package g++, when a version of pyarrow is used for the first time: see
``pyarrow_build``. No Python code runs per request. In a pool with ``owner_tags`` the owner is ``pyarrow``, or the
thread's tag. ``pyarrow.total_allocated_bytes()`` counts requested bytes, the pool's figures count chunks.
"""

import ctypes
from typing import TYPE_CHECKING, Final

from allotment._core import GuestMemory, Pool
from allotment.arrays.optional_package import load_package
from allotment.devices.device_tuples import LogicalDevice
from allotment.integrations import pyarrow_build
from allotment.integrations.shared.block import Block
from allotment.integrations.shared.pool_argument import as_pool
from allotment.integrations.shared.process_wide import ProcessWide

if TYPE_CHECKING:
    from pyarrow import MemoryPool

#: pyarrow's memory pools by the address of the guest.
_made: "Final[dict[int, MemoryPool]]" = {}
#: pyarrow's default before the first ``install`` or ``use``.
_own: "MemoryPool | None" = None


def memory_pool(pool_or_device: Pool | LogicalDevice | str) -> "MemoryPool":
    """Return a ``pyarrow.MemoryPool`` over a pool, for the argument ``memory_pool`` of pyarrow's functions.

    Args:
        pool_or_device: A pool over host memory, or a logical device that has one, or its name, such as "/GPU:0".

    Raises:
        ImportError: pyarrow cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The device does not exist or has no pool; or the pool is closed, or its memory is not memory of
            this process.
        RuntimeError: There is no C++ compiler, or it failed; or the pool was created before a fork, in the parent
            process.
    """
    load_package("pyarrow", "a pool for pyarrow needs", "pip install pyarrow")
    guest = GuestMemory(as_pool(pool_or_device), "pyarrow")
    if guest.address not in _made:
        with _pools.lock:
            _made.setdefault(guest.address, _make(guest))
    return _made[guest.address]


def install(pool_or_device: Pool | LogicalDevice | str) -> None:
    """Make a pool pyarrow's default memory pool.

    Args:
        pool_or_device: A pool, a logical device or its name, as for ``memory_pool``.

    Raises:
        ImportError: pyarrow cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: As for ``memory_pool``.
        RuntimeError: A pool is installed already; or as for ``memory_pool``.
    """
    _pools.install(memory_pool(pool_or_device))


def use(pool_or_device: Pool | LogicalDevice | str) -> Block:
    """Return a context manager that makes a pool pyarrow's default memory pool in its block. Blocks nest.

    The block applies to every thread, so while one thread is in a block, others cannot enter one.

    Args:
        pool_or_device: A pool, a logical device or its name, as for ``memory_pool``.

    Raises:
        ImportError: pyarrow cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: As for ``memory_pool``.
        RuntimeError: On entry: another thread is in a block. Or as for ``memory_pool``.
    """
    memory = memory_pool(pool_or_device)
    return Block(lambda: _pools.begin(memory))


def _make(guest: GuestMemory) -> "MemoryPool":
    from pyarrow import default_memory_pool

    library = pyarrow_build.library()
    create, exchange_default = library.allotment_create, library.allotment_exchange_default
    create.argtypes, create.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_void_p
    exchange_default.argtypes, exchange_default.restype = (ctypes.c_void_p,), ctypes.c_void_p
    # pyarrow wraps no pool but its default one.
    former = exchange_default(create(guest.functions, guest.address))
    try:
        return default_memory_pool()
    finally:
        exchange_default(former)


def _change(memory: "MemoryPool | None", former: "MemoryPool | None") -> None:
    from pyarrow import default_memory_pool, set_memory_pool

    global _own
    if former is None:
        _own = default_memory_pool()
    set_memory_pool(memory or _own)


_pools: "Final[ProcessWide[MemoryPool]]" = ProcessWide("pyarrow", _change)
uninstall: Final = _pools.uninstall

__all__ = ["install", "memory_pool", "uninstall", "use"]
