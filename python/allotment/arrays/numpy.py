"""NumPy as an array library, and which library the running function makes its arrays with.

A kernel takes the library from the arrays that it is given: NumPy's functions dispatch by ``__array_ufunc__`` and
``__array_function__``, and ``like=`` says the same to those that make arrays. Only a kernel that is given none asks
for ``current_library``.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from allotment.arrays.library import ArrayLibrary

_P = ParamSpec("_P")
_T = TypeVar("_T")
Host = npt.NDArray[Any]


class NumpyLibrary:
    """Arrays of NumPy, in the memory of the handler that is installed; the same for all devices with host memory."""

    name: Final = "numpy"
    #: It is there, or this module could not be imported.
    fault: Final = None

    def owns(self, value: Any) -> bool:
        """Whether a value is an array of NumPy."""
        return isinstance(value, np.ndarray)

    def call(self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function; the handler of the context decides where its arrays are."""
        return function(*args, **kwargs)

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Host:
        """Make an array whose elements are not set."""
        return np.empty(shape, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Host:
        """Make an array of zeros."""
        return np.zeros(shape, dtype)

    def full(self, shape: tuple[int, ...], value: Any, dtype: npt.DTypeLike) -> Host:
        """Make an array whose elements are all one value, which may be a text."""
        return np.full(shape, value, dtype)

    def from_host(self, array: Host) -> Host:
        """Copy an array."""
        return np.array(array, order="C")

    to_host = copy = from_host

    def from_dlpack(self, value: Any) -> Host:
        """Make an array over memory that another library has, by DLPack's protocol, without a copy."""
        return np.from_dlpack(value)


#: It has no state, so that one is enough.
NUMPY: Final[ArrayLibrary] = NumpyLibrary()
#: The library of a context, set in those in which a device with another library computes.
LIBRARY: Final[ContextVar[ArrayLibrary]] = ContextVar("allotment_array_library", default=NUMPY)


def current_library() -> ArrayLibrary:
    """Return the library of the device in whose memory the caller computes."""
    return LIBRARY.get()


__all__ = ["LIBRARY", "NUMPY", "NumpyLibrary", "current_library"]
