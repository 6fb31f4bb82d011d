"""PyTorch's CUDA memory from a pool.

::

    from allotment.integrations import torch as pooled

    pooled.install(allotment.Pool("8GiB", source="cuda:0"))     # every thread, from now on
    with pooled.use(pool):                                      # this thread, while the block runs
        y = model(x)

PyTorch's caching allocator stays on top: its figures, snapshots and ``empty_cache`` work, and it takes segments of
2 MiB and more from the pool through C functions of this package (``torch.cuda.MemPool`` over
``CUDAPluggableAllocator``). PyTorch keeps the memory of dead tensors as segments until ``uninstall()``, the end of the
``use`` block, or ``torch.cuda.empty_cache()``.

**Refusals.** When the pool refuses, PyTorch empties its cache, tries again, and raises ``torch.OutOfMemoryError``. An
error that leaves a ``use`` block gets the pool's report as a note. Elsewhere ``take_refusal()`` has it. A request
neither waits for a free nor collects garbage, as PyTorch holds its locks meanwhile.

**Threads.** PyTorch computes gradients on threads of its own, which a ``use`` block does not affect:
``torch.autograd.set_multithreading_enabled(False)`` around ``backward()`` keeps it in this one. ``install`` applies to
all threads; PyTorch has no public function for that, and ``install`` raises ``ImportError`` if a release lacks the
one that it calls.

**CUDA graphs** have a pool of PyTorch's own while they are captured; it is not taken from ours. While any pool is in
use, PyTorch keeps the memory of dead tensors that several streams have used (``Tensor.record_stream``): with
``install``, until ``uninstall()``.

**Another allocator in place of PyTorch's.** ``allocator`` returns a ``CUDAPluggableAllocator`` for
``torch.cuda.memory.change_current_allocator``. Each tensor is then an allocation of the pool. PyTorch does not notice
a refusal of such an allocator: the tensor is at address 0, and the next kernel fails. So the functions above do not use
it. The C functions order memory between streams by events; PyTorch ignores ``Tensor.record_stream`` there.

It needs PyTorch 2.11: earlier releases are refused with ``ImportError``, as their memory pools do not nest.

Tested without a GPU: the C functions with a stand-in for the driver, the calls of PyTorch with a stand-in for PyTorch,
and PyTorch 2.15 loads the functions. It has not run on a GPU yet.
"""

import re
import threading
import weakref
from types import TracebackType
from typing import Any, Final

from allotment import _core
from allotment._core import Pool, TorchAllocator
from allotment.arrays.optional_package import find_attribute, load_package
from allotment.devices.device_tuples import LogicalDevice
from allotment.integrations.shared.installations import Installations
from allotment.integrations.shared.pool_argument import as_cuda_pool

#: The first release whose memory pools nest.
_OLDEST: Final = (2, 11)
_INSTALL: Final = "pip install 'torch>=2.11', in a build for CUDA"

_installed: Final = Installations("PyTorch")
uninstall: Final = _installed.uninstall
#: The allocator of each pool alone.
_of_pool: Final["weakref.WeakKeyDictionary[Pool, Any]"] = weakref.WeakKeyDictionary()
#: Held while one is made. Re-entrant: a finaliser may enter a block.
_making: Final = threading.RLock()
#: PyTorch's objects for the allocators: PyTorch's own pools refer to them without keeping them alive.
_kept: Final[list[Any]] = []


def _load_torch() -> Any:
    torch = load_package("torch", "a pool for PyTorch needs", _INSTALL)
    version = getattr(torch, "__version__", "")
    found = re.match(r"(\d+)\.(\d+)", str(version))
    if found is not None and (int(found[1]), int(found[2])) < _OLDEST:
        raise ImportError(
            f"torch {version} has no memory pools that nest: before 2.11, the first of several pools in use serves, "
            f"also in place of the pool of a CUDA graph that is captured. Upgrade it: {_INSTALL}",
            name="torch",
        )
    return torch


def allocator(*pools_or_devices: Pool | LogicalDevice | str) -> Any:
    """Return a ``torch.cuda.memory.CUDAPluggableAllocator`` over pools, one for each device.

    The caller keeps the pools alive. See above for what ``change_current_allocator`` makes of a refusal.

    Raises:
        ImportError: PyTorch cannot be imported, or is built without CUDA.
        TypeError: An argument is neither a pool nor a device.
        ValueError: A pool is not over memory of a CUDA device, or two are over that of one.
        RuntimeError: 16 sets of pools are in use already.
    """
    torch = _load_torch()
    pools: dict[int, Pool] = {}
    for each in pools_or_devices:
        pool, device = as_cuda_pool(each, "PyTorch")
        if device in pools:
            raise ValueError(f"two pools over memory of CUDA device {device}: PyTorch takes it from one")
        pools[device] = pool
    find_attribute(torch, "_C._cuda_customAllocator", _INSTALL)
    make = find_attribute(torch, "cuda.memory.CUDAPluggableAllocator", _INSTALL)
    functions = TorchAllocator(pools)
    made = make(_core.__file__, functions.alloc_name, functions.free_name)
    _kept.append(made)
    return made


def take_refusal() -> BaseException | None:
    """Return the last refusal of memory for PyTorch, on any thread, and forget it; ``None`` if there is none.

    Returns:
        An ``allotment.OutOfMemoryError`` with the pool's report and figures; its attribute ``pool`` is the pool's name.
        Other faults, such as a free of memory that no pool gave out, are other exceptions.
    """
    return TorchAllocator.take_refusal()


def _mem_pool(torch: Any, pool: Pool, device: int) -> Any:
    # One thread makes it: there are few, and each is kept.
    with _making:
        made = _of_pool.get(pool)
        if made is None:
            made = _of_pool[pool] = allocator(pool)
    # The allocator of a MemPool is that of the device which is current when it is made; others get the driver's memory.
    with find_attribute(torch, "cuda.device", _INSTALL)(device):
        return find_attribute(torch, "cuda.MemPool", _INSTALL)(made.allocator())


def install(pool_or_device: Pool | LogicalDevice | str) -> None:
    """Let PyTorch take segments from a pool from now on, on any thread. One call for each device.

    Args:
        pool_or_device: A pool over memory of a CUDA device, a logical device on one, or its name, such as "/GPU:0".

    Raises:
        ImportError: PyTorch cannot be imported, is built without CUDA, or lacks the function for all threads.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The pool is not over memory of a CUDA device.
        RuntimeError: PyTorch takes that device's memory from a pool already; or it cannot use the device.
    """
    torch = _load_torch()
    pool, device = as_cuda_pool(pool_or_device, "PyTorch")
    begin = find_attribute(torch, "_C._cuda_beginAllocateToPool", _INSTALL)
    end = find_attribute(torch, "_C._cuda_endAllocateToPool", _INSTALL)
    release = find_attribute(torch, "_C._cuda_releasePool", _INSTALL)
    with _installed.add(device) as undo:
        mem_pool = _mem_pool(torch, pool, device)
        # The last to go: without it PyTorch returns the segments to the pool.
        undo.callback(_keep, mem_pool, pool)
        begin(device, mem_pool.id)
        undo.callback(release, device, mem_pool.id)
        undo.callback(end, device, mem_pool.id)


def _keep(*_values: Any) -> None:
    """Do nothing: an exit stack that calls it keeps the values alive until then."""


class use:  # noqa: N801 - reads as a statement
    """Context manager that lets PyTorch take segments from a pool in its block, in this thread only. Blocks nest.

    Args:
        pool_or_device: A pool, a logical device or its name, as for ``install``.

    Raises:
        ImportError: PyTorch cannot be imported, or is built without CUDA.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The pool is not over memory of a CUDA device.
    """

    __slots__ = ("_block", "_device", "_mem_pool", "_pool", "_torch")

    def __init__(self, pool_or_device: Pool | LogicalDevice | str) -> None:
        self._torch = _load_torch()
        self._pool, self._device = as_cuda_pool(pool_or_device, "PyTorch")
        self._block: Any = None
        self._mem_pool: Any = None

    def __enter__(self) -> None:
        self._mem_pool = _mem_pool(self._torch, self._pool, self._device)
        begin = find_attribute(self._torch, "cuda.use_mem_pool", _INSTALL)
        take_refusal()  # an earlier one
        self._block = begin(self._mem_pool, device=self._device)
        self._block.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._block.__exit__(kind, value, trace)
        finally:
            self._block = self._mem_pool = None
        refused = find_attribute(self._torch, "OutOfMemoryError", _INSTALL)
        if isinstance(value, refused) and (refusal := take_refusal()) is not None:
            value.add_note(f"pool {getattr(refusal, 'pool', None)!r}: {refusal}")


__all__ = ["allocator", "install", "take_refusal", "uninstall", "use"]
