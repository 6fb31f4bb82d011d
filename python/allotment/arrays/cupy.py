"""CuPy as an array library: arrays in the memory of one CUDA device, allocated from a pool.

CuPy is imported when a ``CupyLibrary`` or a ``PoolAllocator`` is made, and not before.

The bookkeeping - which chunk an array keeps, when it is freed, which stream waits for which, what a refusal says - is
tested without a GPU, with CuPy's wheel and with stand-ins for CuPy and the driver. What needs a GPU (copies, kernels,
events of a real driver) was never run on one.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar

from allotment._core import OutOfMemoryError, Pool
from allotment.arrays.optional_package import find_attribute, load_package

if TYPE_CHECKING:
    import numpy.typing as npt

_P = ParamSpec("_P")
_T = TypeVar("_T")

_INSTALL: Final = "pip install cupy-cuda12x or cupy-cuda13x, whichever the driver runs"


class Stream(Protocol):
    """What the allocator needs of ``cupy.cuda.Stream``."""

    @property
    def ptr(self) -> int:
        """The address of the driver's stream, 0 for the default one."""


def load_cupy() -> Any:
    """Import CuPy and return the module.

    Raises:
        ModuleNotFoundError: It is not installed.
        ImportError: It is, and its import fails; the cause says why.
    """
    return load_package("cupy", "an array on a CUDA device needs", _INSTALL)


class _Owner:
    """Keeps the memory of a CuPy array; with the array's last view it goes back to the pool."""

    __slots__ = ("_address", "_pool", "_stream")

    def __init__(self, pool: Pool, address: int, stream: Stream) -> None:
        self._pool = pool
        self._address = address
        #: Kept, so that the stream exists when the memory is freed behind its work.
        self._stream = stream

    def __del__(self) -> None:
        self._pool.free_on_stream(self._address, self._stream.ptr)


class PoolAllocator:
    """An allocator for ``cupy.cuda.set_allocator`` and ``using_allocator`` that takes memory from a pool.

    **Streams.** Memory is freed when Python drops the last view of its array, and the GPU may not be done with it. The
    next array in the same stream comes behind that work by itself; another stream waits for an event first
    (``Pool.malloc_on_stream``). As with CuPy's own pool, a program that uses an array in another stream than it was
    made in keeps it alive until that stream is done.

    Args:
        pool: The pool, over memory of the device.
        device_id: The device's number in CuPy.
        current_stream: Returns the current stream; CuPy's own function by default.
        current_device: Returns the number of the current device; CuPy's own function by default.

    Raises:
        ImportError: CuPy cannot be imported, or lacks what an allocator needs.
    """

    def __init__(
        self,
        pool: Pool,
        device_id: int,
        current_stream: Callable[[], Stream] | None = None,
        current_device: Callable[[], int] | None = None,
    ) -> None:
        cupy = load_cupy()
        self.pool: Final = pool
        self.device_id: Final = device_id
        self._unowned: Final = find_attribute(cupy, "cuda.memory.UnownedMemory", _INSTALL)
        self._pointer: Final = find_attribute(cupy, "cuda.memory.MemoryPointer", _INSTALL)
        self._refusal: Final = find_attribute(cupy, "cuda.memory.OutOfMemoryError", _INSTALL)
        self._current_stream: Final = current_stream or find_attribute(
            cupy, "cuda.get_current_stream", _INSTALL
        )
        self._current_device: Final = current_device or find_attribute(
            cupy, "cuda.runtime.getDevice", _INSTALL
        )

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
            address = self.pool.malloc_on_stream(max(nbytes, 1), stream.ptr)
        except OutOfMemoryError as error:
            failed = error.with_traceback(None)
        else:
            owner = _Owner(self.pool, address, stream)
            return self._pointer(self._unowned(address, nbytes, owner, self.device_id), 0)
        stats = self.pool.stats()
        refusal = self._refusal(nbytes, stats.in_use, stats.limit)
        refusal.add_note(str(failed))
        raise refusal from failed


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

    def from_dlpack(self, value: Any) -> Any:
        """Make an array over memory of the device that another library has, by DLPack's protocol, without a copy."""
        return self.call(self._cupy.from_dlpack, value)

    def copy(self, array: Any) -> Any:
        """Copy an array of CuPy, which may be on another device: to this one, which is the current one meanwhile."""
        return self.call(array.copy, order="C")


__all__ = ["CupyLibrary", "PoolAllocator", "Stream", "load_cupy"]
