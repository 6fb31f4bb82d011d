"""The protocol of array libraries. It imports none of them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy.typing as npt

    Host = npt.NDArray[Any]

_P = ParamSpec("_P")
_T = TypeVar("_T")


class ArrayLibrary(Protocol):
    """Makes arrays in the memory of one device, copies arrays to it and to the host, and computes there.

    All methods may raise ``MemoryError`` when the memory is short; the pool of the device has the report.
    """

    @property
    def name(self) -> str:
        """As in reports and logs: ``"numpy"``, ``"cupy"``."""

    @property
    def fault(self) -> str | None:
        """Why the library cannot compute on the device, as a sentence; ``None`` if it can.

        The first look loads the library, which may take a second. It raises nothing.
        """

    def owns(self, value: Any) -> bool:
        """Whether a value is an array of the library, on whichever device."""

    def call(self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function of arrays so that the arrays that it makes are in the device's memory."""

    def empty(self, shape: tuple[int, ...], dtype: "npt.DTypeLike") -> Any:
        """Make an array whose elements are not set."""

    def zeros(self, shape: tuple[int, ...], dtype: "npt.DTypeLike") -> Any:
        """Make an array of zeros."""

    def full(self, shape: tuple[int, ...], value: Any, dtype: "npt.DTypeLike") -> Any:
        """Make an array whose elements are all one number.

        Args:
            shape: The shape.
            value: A Python number, or an array without axes, of the host or of the library on whichever device.
            dtype: The element type.
        """

    def from_host(self, array: "Host") -> Any:
        """Copy an array from host memory; the copy is in C's order."""

    def to_host(self, array: Any) -> "Host":
        """Copy an array of the library to host memory, in C's order; the copy is complete when the method returns."""

    def from_dlpack(self, value: Any) -> Any:
        """Make an array over memory of the device that another library has, by DLPack's protocol, without a copy."""

    def copy(self, array: Any) -> Any:
        """Copy an array of the library, which may be on another device; the copy is in C's order."""


__all__ = ["ArrayLibrary"]
