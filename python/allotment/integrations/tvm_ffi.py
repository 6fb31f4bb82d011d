"""Puts the tensors that functions of tvm-ffi create on the CPU into a pool, such as those of FlashInfer and TVM.

::

    from allotment.integrations import tvm_ffi as pooled

    with pooled.use(pool):      # in this thread
        y = module.kernel(x)
    pooled.install(pool)        # every thread

A tensor goes back to its pool when its last reference dies, on any thread, also after ``uninstall()``. Functions
create such tensors through tvm-ffi's environment (``Tensor::FromEnvAlloc``). A call with tensors of a framework that
has an allocator of its own, such as PyTorch, uses that one.

**Running out of memory.** The function raises ``MemoryError`` with the pool's report. A request neither waits for a
free nor collects garbage first. A tensor on another device than the CPU is a ``ValueError``.

**Processes.** In a forked child the pool belongs to the parent: tensors get memory of the C library. The pool lives
as long as the process. No Python code runs per request. In a pool with ``owner_tags`` the owner is ``tvm_ffi``, or
the thread's tag.
"""

import ctypes
import threading
from types import TracebackType
from typing import Any, Final

from allotment._core import GuestMemory, Pool
from allotment.arrays.optional_package import load_package
from allotment.devices.device_tuples import LogicalDevice
from allotment.integrations.shared.pool_argument import as_pool
from allotment.integrations.shared.process_wide import ProcessWide

_INSTALL: Final = "pip install apache-tvm-ffi"


class _OfThread(threading.local):
    """The memory of the innermost ``use`` block of this thread."""

    memory: GuestMemory | None = None


_of_thread: Final = _OfThread()
#: tvm-ffi's allocator for all threads before ``install``: the address of a function, or ``None``.
_former: int | None = None


def install(pool_or_device: Pool | LogicalDevice | str) -> None:
    """Put the tensors that functions of tvm-ffi create from now on into a pool, in every thread.

    Args:
        pool_or_device: A pool over host memory, or a logical device that has one, or its name, such as "/GPU:0".

    Raises:
        ImportError: tvm-ffi cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The device does not exist or has no pool; or the pool is closed, or its memory is not memory of
            this process.
        RuntimeError: A pool is installed already; or the pool was created before a fork, in the parent process.
    """
    _installed.install(_memory(pool_or_device))


class use:  # noqa: N801 - reads as a statement
    """Context manager that puts the tensors that functions of tvm-ffi create in its block into a pool. Blocks nest.

    The block applies to its thread. One that ends in another thread than it began in changes nothing there, and the
    first thread stays in the pool.

    Args:
        pool_or_device: A pool, a logical device or its name, as for ``install``.

    Raises:
        ImportError: tvm-ffi cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: As for ``install``.
        RuntimeError: The pool was created before a fork, in the parent process.
    """

    __slots__ = ("_former", "_former_allocator", "_memory", "_thread")

    def __init__(self, pool_or_device: Pool | LogicalDevice | str) -> None:
        self._memory = _memory(pool_or_device)

    def __enter__(self) -> None:
        self._thread = threading.get_ident()
        self._former = _of_thread.memory
        self._serve(self._memory)
        self._former_allocator = _set_allocator(GuestMemory.tvm_ffi_allocator, process_wide=False)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if threading.get_ident() == self._thread:
            _set_allocator(self._former_allocator, process_wide=False)
            self._serve(self._former)

    @staticmethod
    def _serve(memory: GuestMemory | None) -> None:
        _of_thread.memory = memory
        if memory is None:
            GuestMemory.stop_tvm_ffi(process_wide=False)
        else:
            memory.serve_tvm_ffi(process_wide=False)


def _memory(pool_or_device: Pool | LogicalDevice | str) -> GuestMemory:
    _library()
    return GuestMemory(as_pool(pool_or_device), "tvm_ffi")


def _library() -> ctypes.CDLL:
    libinfo: Any = load_package("tvm_ffi.libinfo", "a pool for tvm-ffi needs", _INSTALL)
    return ctypes.CDLL(libinfo.find_libtvm_ffi())


def _set_allocator(allocator: int | None, process_wide: bool) -> int | None:
    """Set the allocator of this thread, or of all threads, too; return the former one of this thread."""
    function = _library().TVMFFIEnvSetDLPackManagedTensorAllocator
    function.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
    former = ctypes.c_void_p()
    if function(allocator, process_wide, ctypes.byref(former)) != 0:
        raise RuntimeError("tvm-ffi refuses to set an allocator")
    return former.value


def _change(memory: GuestMemory | None, former: GuestMemory | None) -> None:
    global _former
    if memory is None:
        _set_allocator(_former, process_wide=True)
        GuestMemory.stop_tvm_ffi(process_wide=True)
        return
    if former is None:
        get_allocator = _library().TVMFFIEnvGetDLPackManagedTensorAllocator
        get_allocator.restype = ctypes.c_void_p
        _former = get_allocator()
    memory.serve_tvm_ffi(process_wide=True)
    _set_allocator(GuestMemory.tvm_ffi_allocator, process_wide=True)


_installed: Final = ProcessWide("tvm-ffi", _change)
uninstall: Final = _installed.uninstall

__all__ = ["install", "uninstall", "use"]
