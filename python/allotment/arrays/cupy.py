"""CuPy as an array library: arrays in the memory of one CUDA device, allocated from a pool.

CuPy is imported when a ``PoolAllocator`` is made or a ``CupyLibrary`` is used, and not before.

The bookkeeping - which chunk an array keeps, when it is freed, which stream waits for which, what a refusal says - is
tested without a GPU, with CuPy's wheel and with stand-ins for CuPy and the driver. What needs a GPU (copies, kernels,
events of a real driver) was never run on one.
"""

import functools
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, Protocol, TypeVar

from allotment._core import OutOfMemoryError, Pool
from allotment.arrays.optional_package import find_attribute, load_package
from allotment.errors import InternalError

if TYPE_CHECKING:
    import numpy.typing as npt

#: The start of NumPy's error for an array that no address space holds.
TOO_BIG: Final = "array is too big"
#: The packages whose exceptions are failures of CUDA.
_CUDA_PACKAGES: Final = ("cupy", "cupy_backends", "cuda")

_P = ParamSpec("_P")
_T = TypeVar("_T")

_INSTALL: Final = "pip install cupy-cuda12x or cupy-cuda13x, whichever the driver runs"


class Stream(Protocol):
    """The part of ``cupy.cuda.Stream`` that the allocator uses."""

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


class _Loaded(NamedTuple):
    """CuPy, and what its calls on one device need."""

    cupy: Any
    device: Any
    allocator: PoolAllocator


class CupyLibrary:
    """CuPy's arrays on one device, in the memory of a pool (``allotment.arrays.library.ArrayLibrary``).

    CuPy is imported at the first use of a method, or of ``fault``. Each method raises ``RuntimeError`` with the text of
    ``fault`` if there is one.

    Args:
        pool: The pool, over memory of the device.
        device_id: The device's number in CuPy: the driver's.
        pci_bus_id: The device's address on the PCI bus, which CuPy's device of that number must have; not compared if
            it is ``None``.
    """

    name: Final = "cupy"

    def __init__(self, pool: Pool, device_id: int, pci_bus_id: str | None = None) -> None:
        self._pool: Final = pool
        self._device_id: Final = device_id
        self._pci_bus_id: Final = pci_bus_id

    @property
    def fault(self) -> str | None:
        """Why nothing can compute on the device, ``None`` if it can. The first look imports CuPy."""
        return self._opened if isinstance(self._opened, str) else None

    @functools.cached_property
    def _opened(self) -> _Loaded | str:
        """CuPy and what its calls need, or why they are not there."""
        try:
            cupy = load_cupy()
        except ModuleNotFoundError as error:
            return str(error)
        except ImportError as error:
            return f"CuPy is installed, and its import fails: {_one_line(error.__cause__ or error)}"
        bus = self._pci_bus_id
        try:
            found = cupy.cuda.runtime.deviceGetPCIBusId(self._device_id)
            if bus is not None and _short_bus(found) != _short_bus(bus):
                return (
                    f"CUDA device {self._device_id} is the one at {bus}, and CuPy's device of that number the one at "
                    f"{found}: CuPy works with another CUDA driver"
                )
            device = cupy.cuda.Device(self._device_id)
            return _Loaded(cupy, device, PoolAllocator(self._pool, self._device_id))
        except Exception as error:
            # An error of CUDA's runtime has a class of CuPy's, which an old or a broken CuPy may lack.
            return f"CuPy cannot use CUDA device {self._device_id}: {_one_line(error)}"

    @property
    def _loaded(self) -> _Loaded:
        opened = self._opened
        if isinstance(opened, str):
            raise RuntimeError(opened)
        return opened

    def owns(self, value: Any) -> bool:
        """Whether a value is an array of CuPy."""
        return isinstance(value, self._loaded.cupy.ndarray)

    def call(self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function with the device as the current one and the pool as CuPy's allocator, in this thread only.

        Raises:
            MemoryError: The pool refuses, or the driver has no memory for the launch of a kernel.
            allotment.errors.InternalError: A call of CUDA failed, or a kernel could not be compiled.
        """
        cupy, device, allocator = self._loaded
        try:
            with device, cupy.cuda.using_allocator(allocator):
                return function(*args, **kwargs)
        except Exception as error:
            failure = _failure(error)
            if failure is None:
                raise
        raise failure

    def empty(self, shape: tuple[int, ...], dtype: "npt.DTypeLike") -> Any:
        """Make an array whose elements are not set."""
        return self._made(shape, dtype, self._loaded.cupy.empty, shape, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: "npt.DTypeLike") -> Any:
        """Make an array of zeros."""
        return self._made(shape, dtype, self._loaded.cupy.zeros, shape, dtype)

    def full(self, shape: tuple[int, ...], value: Any, dtype: "npt.DTypeLike") -> Any:
        """Make an array whose elements are all one number: a Python number, or an array without axes on any device."""
        made = self.empty(shape, dtype)
        # From the device itself the host waits for nothing.
        here = self.owns(value) and value.device.id == self._device_id
        number = value if here else getattr(value, "item", lambda: value)()
        self.call(operator.setitem, made, ..., number)
        return made

    def from_host(self, array: Any) -> Any:
        """Copy an array from host memory."""
        return self._made(array.shape, array.dtype, self._loaded.cupy.array, array, order="C")

    def _made(
        self,
        shape: tuple[int, ...],
        dtype: "npt.DTypeLike",
        function: Callable[_P, _T],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Call a function that makes an array of a shape and a type; an error of a short memory has both, as NumPy's.

        Raises:
            ValueError: No address space holds it. CuPy computes with whole numbers that overflow.
        """
        if math.prod(shape) * self._loaded.cupy.dtype(dtype).itemsize >= 1 << 63:
            raise ValueError(TOO_BIG)
        try:
            return self.call(function, *args, **kwargs)
        except MemoryError as error:
            vars(error).update(shape=shape, dtype=dtype)
            raise

    def to_host(self, array: Any) -> Any:
        """Copy an array to host memory, behind the work of the current stream; the host waits for it."""
        return self.call(self._loaded.cupy.asnumpy, array, order="C")

    def from_dlpack(self, value: Any) -> Any:
        """Make an array over memory of the device that another library has, by DLPack's protocol, without a copy."""
        return self.call(self._loaded.cupy.from_dlpack, value)

    def copy(self, array: Any) -> Any:
        """Copy an array of CuPy, which may be on another device: to this one, which is the current one meanwhile."""
        return self.call(array.copy, order="C")


def _failure(error: Exception) -> Exception | None:
    """Return the error for a failure of CUDA, ``None`` for any other exception: the classes differ by library."""
    if isinstance(error, MemoryError) or type(error).__module__.partition(".")[0] not in _CUDA_PACKAGES:
        return None
    text = _one_line(error)
    # Only a call of the pool's size has a refusal with a report; this is memory that the driver takes by itself.
    return MemoryError(text) if "cudaErrorMemoryAllocation" in text else InternalError(None, None, text)


def _short_bus(pci_bus_id: str) -> str:
    """Return an address on the PCI bus without leading zeros, of which there may be four more."""
    return pci_bus_id.lower().lstrip("0")


def _one_line(error: BaseException) -> str:
    # CuPy puts a page of advice around the error of its own import.
    first = error.__cause__ or error
    text = str(first).strip().partition("\n")[0]
    return f"{type(first).__name__}: {text}" if text else type(first).__name__


__all__ = ["CupyLibrary", "PoolAllocator", "Stream", "load_cupy"]
