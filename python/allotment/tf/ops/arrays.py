"""What functions of operations need of NumPy beyond its calls: they run on arrays, in a device's memory."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_HALF: Final = np.dtype(np.float16)
_Function = TypeVar("_Function", bound=Callable[..., Any])


def as_array(value: Any) -> Array:
    """Return the result of a function of arrays as an array: for rank 0 NumPy returns scalars, and CuPy arrays."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def is_host(array: Any) -> bool:
    """Whether an array is NumPy's: kernels have code for the processor's cache and vector units, and for a GPU none."""
    return isinstance(array, np.ndarray)


def full(shape: int | Sequence[int], value: Any, dtype: npt.DTypeLike, like: Array) -> Array:
    """Make an array of one value beside another array; ``np.full`` has an argument for CuPy that CuPy does not know."""
    made = np.empty(shape, dtype, like=like)
    made[...] = value
    return made


def identity_matrix(size: int, like: Array) -> Array:
    """Make a matrix with ones on its main diagonal, of the type of another array and beside it."""
    made = np.zeros((size, size), like.dtype, like=like)
    made.reshape(-1)[:: size + 1] = 1
    return made


def open_grid(lengths: tuple[int, ...], like: Array) -> tuple[Array, ...]:
    """Return the numbers along each axis of a shape, to be broadcast to each other, beside the elements of ``like``."""
    last = len(lengths) - 1
    return tuple(
        np.arange(length, like=like).reshape(-1, *[1] * (last - axis)) for axis, length in enumerate(lengths)
    )


def owned(value: Any) -> Array:
    """A result in memory of its own and in C's order: the value itself, or a copy of a view."""
    array = as_array(value)
    return array if array.base is None and array.flags.c_contiguous else array.copy()


def quotient(total: Array, divisor: Any) -> Array:
    """Divide whole numbers in place towards zero, as C does, the divisor first cast to their type."""
    divisor = total.dtype.type(divisor) if isinstance(divisor, int) else divisor.astype(total.dtype)
    np.subtract(total, np.fmod(total, divisor), out=total)
    np.floor_divide(total, divisor, out=total)
    return total


def size_fault(shape: tuple[int, ...], dtype: npt.DTypeLike) -> str | None:
    """TensorFlow's words for a shape that no memory could ever hold, or ``None``."""
    # NumPy refuses such lengths beside a zero, too.
    if math.prod(filter(None, shape)) * np.dtype(dtype).itemsize > np.iinfo(np.intp).max:
        return f"Shape [{','.join(map(str, shape))}] is too large (more than 2**63 - 1 entries)"
    return None


def in_single(function: _Function) -> _Function:
    """Let a function compute half precision in single precision, and round once at the end.

    Sums of halves soon outgrow them, and a chain of rounded steps loses what few digits there are. The first
    argument is an array and decides.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        if args[0].dtype != _HALF:
            return function(*args, **kwargs)
        result = function(*map(_widened, args), **kwargs)
        return tuple(map(_narrowed, result)) if type(result) is tuple else _narrowed(result)

    return call  # type: ignore[return-value]


def _narrowed(result: Any) -> Any:
    # Eigenvalues of halves are complex and stay what they are: there are no complex halves.
    return result.astype(_HALF) if result.dtype == np.float32 else result


def _widened(value: Any) -> Any:
    return value.astype(np.float32) if getattr(value, "dtype", None) == _HALF else value
