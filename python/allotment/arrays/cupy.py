"""CuPy as an array library: arrays in the memory of one CUDA device, allocated from a pool.

CuPy is imported when a ``CupyLibrary`` or a ``PoolAllocator`` is made, and not before.

The bookkeeping - which chunk an array keeps, when it is freed, which stream waits for which, what a refusal says - is
tested without a GPU, with CuPy's wheel and with a stand-in. What needs a GPU (copies, kernels, events of a real driver)
was never run on one.
"""

import importlib
from collections import deque
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar

from allotment._core import Allocation, OutOfMemoryError, Pool

if TYPE_CHECKING:
    import numpy.typing as npt

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Stream(Protocol):
    """What the allocator needs of ``cupy.cuda.Stream``."""

    @property
    def ptr(self) -> Hashable:
        """The address of the driver's stream, 0 for the default one."""

    def record(self) -> Any:
        """Record an event behind the work that is queued in the stream."""

    def wait_event(self, event: Any) -> None:
        """Let the work that is queued from now on wait for an event; the host does not wait."""


def load_cupy() -> Any:
    """Import CuPy and return the module.

    Raises:
        ModuleNotFoundError: It is not installed.
        ImportError: It is, and its import fails; the cause says why.
    """
    try:
        return importlib.import_module("cupy")
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise
        error.__traceback__ = None
    except ImportError as error:
        error.add_note("CuPy is installed, and its import fails: no array can be on a CUDA device.")
        raise
    raise ModuleNotFoundError(
        "arrays on a CUDA device are CuPy's, and CuPy is not installed: pip install cupy-cuda12x or cupy-cuda13x, "
        "whichever the driver runs",
        name="cupy",
    )


class _Owner:
    """Keeps the chunk of a CuPy array; with the array's last view the chunk goes back to the pool."""

    __slots__ = ("_allocation", "_freed", "_stream")

    def __init__(self, allocation: Allocation, stream: Stream, freed: "deque[Stream]") -> None:
        self._allocation = allocation
        self._stream = stream
        self._freed = freed

    def __del__(self) -> None:
        # Before the chunk: whoever gets its memory next must find the stream in the queue. It may be any thread, in
        # the middle of any call: an append takes no lock.
        self._freed.append(self._stream)


class PoolAllocator:
    """An allocator for ``cupy.cuda.set_allocator`` and ``using_allocator`` that takes memory from a pool.

    **Streams.** A chunk is freed when Python drops the last view of its array, and the GPU may not be done with it. The
    next array in the same stream comes behind that work by itself. A stream that allocates after another stream
    has freed waits for an event that is recorded there first, once for all frees until then; the host waits for
    nothing. With one stream no event is recorded. As with CuPy's own pool, a program that uses an array in another
    stream than it was made in keeps it alive until that stream is done.

    Args:
        pool: The pool, over memory of the device.
        device_id: The device's number in CuPy.
        current_stream: Returns the current stream; CuPy's own function by default.
        current_device: Returns the number of the current device; CuPy's own function by default.

    Raises:
        ImportError: CuPy cannot be imported.
    """

    def __init__(
        self,
        pool: Pool,
        device_id: int,
        current_stream: Callable[[], Stream] | None = None,
        current_device: Callable[[], int] | None = None,
    ) -> None:
        cuda = load_cupy().cuda
        self.pool: Final = pool
        self.device_id: Final = device_id
        self._memory: Final = cuda.memory
        self._current_stream: Final = current_stream or cuda.get_current_stream
        self._current_device: Final = current_device or cuda.runtime.getDevice
        #: The streams in which arrays were freed, in order, until an allocation has looked.
        self._freed: Final[deque[Stream]] = deque()
        #: The streams with frees, by their address: how many there were. A stream is kept, so that it can record.
        self._frees: Final[dict[Hashable, tuple[Stream, int]]] = {}
        #: How many frees of the other stream a stream has waited for, by the addresses of both.
        self._waited: Final[dict[tuple[Hashable, Hashable], int]] = {}

    def __call__(self, nbytes: int) -> Any:
        """Allocate memory for an array; returns a ``cupy.cuda.MemoryPointer``, for zero bytes one of a whole granule.

        Raises:
            cupy.cuda.memory.OutOfMemoryError: The pool refuses. The cause is the pool's error, a note has its report.
            ValueError: Another device is the current one.
        """
        device = self._current_device()
        if device != self.device_id:
            raise ValueError(
                f"the pool is over memory of CUDA device {self.device_id}, and device {device} is the current one"
            )
        stream = self._current_stream()
        try:
            # CuPy allocates for arrays without elements, too, and computes with the address.
            allocation = self.pool.allocate(max(nbytes, 1))
        except OutOfMemoryError as error:
            failed = error.with_traceback(None)
        else:
            self._order(stream)
            owner = _Owner(allocation, stream, self._freed)
            unowned = self._memory.UnownedMemory(allocation.address, nbytes, owner, self.device_id)
            return self._memory.MemoryPointer(unowned, 0)
        stats = self.pool.stats()
        refusal = self._memory.OutOfMemoryError(nbytes, stats.in_use, stats.limit)
        refusal.add_note(str(failed))
        raise refusal from failed

    def _order(self, stream: Stream) -> None:
        """Let a stream wait for what other streams had queued when they freed memory."""
        while self._freed:
            freed = self._freed.popleft()
            _, count = self._frees.get(freed.ptr, (freed, 0))
            self._frees[freed.ptr] = freed, count + 1
        for address, (other, count) in self._frees.items():
            pair = stream.ptr, address
            if address != stream.ptr and self._waited.get(pair, 0) < count:
                stream.wait_event(other.record())
                self._waited[pair] = count


class CupyLibrary:
    """CuPy's arrays on one device, in the memory of a pool (``allotment.arrays.library.ArrayLibrary``).

    Args:
        pool: The pool, over memory of the device.
        device_id: The device's number in CuPy.

    Raises:
        ImportError: CuPy cannot be imported.
    """

    name: Final = "cupy"

    def __init__(self, pool: Pool, device_id: int) -> None:
        self._cupy: Final = load_cupy()
        self._device: Final = self._cupy.cuda.Device(device_id)
        self.allocator: Final = PoolAllocator(pool, device_id)

    def owns(self, value: Any) -> bool:
        """Whether a value is an array of CuPy."""
        return isinstance(value, self._cupy.ndarray)

    def call(self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function with the device as the current one and the pool as CuPy's allocator, in this thread only."""
        with self._device, self._cupy.cuda.using_allocator(self.allocator):
            return function(*args, **kwargs)

    def empty(self, shape: tuple[int, ...], dtype: "npt.DTypeLike") -> Any:
        """Make an array whose elements are not set."""
        return self.call(self._cupy.empty, shape, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: "npt.DTypeLike") -> Any:
        """Make an array of zeros."""
        return self.call(self._cupy.zeros, shape, dtype)

    def full(self, shape: tuple[int, ...], value: Any, dtype: "npt.DTypeLike") -> Any:
        """Make an array whose elements are all one number, a Python number or an array of the host without axes."""
        return self.call(self._cupy.full, shape, getattr(value, "item", lambda: value)(), dtype)

    def from_host(self, array: Any) -> Any:
        """Copy an array from host memory."""
        return self.call(self._cupy.array, array, order="C")

    def to_host(self, array: Any) -> Any:
        """Copy an array to host memory, behind the work of the current stream; the host waits for it."""
        return self.call(self._cupy.asnumpy, array, order="C")

    def copy(self, array: Any) -> Any:
        """Copy an array of CuPy, which may be on another device: to this one, which is the current one meanwhile."""
        return self.call(array.copy, order="C")


__all__ = ["CupyLibrary", "PoolAllocator", "Stream", "load_cupy"]
