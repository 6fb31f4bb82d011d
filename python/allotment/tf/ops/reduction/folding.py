"""Reductions that NumPy would make with short inner loops, made with long ones.

NumPy reduces the leading axes of an array row by row: with few elements in a row, the loops cost more than the
elements. Several rows together are one long row; what is left is as many rows as there were in one.
"""

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from allotment.tf.ops.arguments.axes import Axes
from allotment.tf.ops.arrays import Array, full, is_host

#: Smaller arrays are reduced as they are.
_LARGE: Final = 1 << 14
#: Elements of a long row, and of one that is long enough as it is.
_ROW: Final = 1 << 12
_LONG: Final = 1 << 8
#: Rows of which NumPy's own loop takes no longer than several calls.
_SHORT: Final = 1 << 4
#: The types that BLAS multiplies.
_BLAS: Final = (np.float32, np.float64)


#: Functions that reduce as a ufunc does: CuPy's ufuncs only add up and multiply.
_REDUCTIONS: Final[dict[np.ufunc, Callable[..., Any]]] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}


def reduce_along(
    ufunc: np.ufunc, array: Array, axes: Axes, dtype: Any, keepdims: bool, initial: Any = None
) -> Any:
    """Reduce along axes as ``ufunc.reduce`` does, in host memory or elsewhere; ``initial`` is the result of nothing."""
    if is_host(array):
        more = {} if initial is None else {"initial": initial}
        return ufunc.reduce(array, axes, dtype, keepdims=keepdims, **more)
    if initial is not None and not array.size:
        kept = np.sum(array, axis=axes, keepdims=keepdims)
        return full(kept.shape, initial, array.dtype, like=array)
    typed = {} if dtype is None else {"dtype": dtype}
    return _REDUCTIONS[ufunc](array, axis=axes, keepdims=keepdims, **typed)


def reduce_folded(
    ufunc: np.ufunc, array: Array, axes: Axes, dtype: Any, keepdims: bool, **kwargs: Any
) -> Any:
    """Reduce along axes as ``ufunc.reduce`` does."""
    if not is_host(array):
        return reduce_along(ufunc, array, axes, dtype, keepdims, **kwargs)
    if array.size >= _LARGE and axes and array.flags.c_contiguous:
        lead = _leading(axes, array.ndim)
        rest = array.shape[lead:]
        width = math.prod(rest)
        if lead and 0 < width < _LONG:
            result = _reduce_rows(ufunc, array.reshape(-1, width), dtype, kwargs)
            return result.reshape((1,) * lead + rest if keepdims else rest)
        length = array.shape[-1]
        if ufunc is np.add and _is_last(axes, array) and dtype in _BLAS and length <= _ROW:
            # A product of matrices adds up a few rows at a time.
            result = np.matmul(array.reshape(-1, length), np.ones(length, array.dtype))
            return result.reshape(array.shape[:-1] + (1,) * keepdims)
    return ufunc.reduce(array, axes, dtype, keepdims=keepdims, **kwargs)


def _is_last(axes: tuple[int, ...], array: Array) -> bool:
    return len(axes) == 1 and axes[0] % array.ndim == array.ndim - 1


def _leading(axes: tuple[int, ...], rank: int) -> int:
    """Return the number of axes if they are the first ones, in any order, and others follow; else 0."""
    places = sorted(axis % rank for axis in axes)
    return len(axes) if len(axes) < rank and places == list(range(len(axes))) else 0


def _reduce_rows(ufunc: np.ufunc, rows: Array, dtype: Any, kwargs: dict[str, Any]) -> Array:
    count, width = rows.shape
    together = min(_ROW // width, count)
    whole = count - count % together
    part: Array = ufunc.reduce(rows[:whole].reshape(-1, together * width), 0, dtype, **kwargs)
    result: Array = ufunc.reduce(part.reshape(together, width), 0, dtype, **kwargs)
    if whole < count:
        ufunc(result, ufunc.reduce(rows[whole:], 0, dtype, **kwargs), out=result)
    return result


def multiply_folded(array: Array, axes: Axes, keepdims: bool) -> Any:
    """Multiply along axes: NumPy multiplies the elements of a row one after the other."""
    if array.size >= _LARGE and is_host(array) and array.flags.c_contiguous:
        if axes is None or len(axes) == array.ndim:
            result = _reduce_rows(np.multiply, array.reshape(-1, 1), array.dtype, {})
            return result.reshape((1,) * array.ndim if keepdims else ())
        if axes and _is_last(axes, array):
            result = _multiply_halves(array.reshape(-1, array.shape[-1]))
            return result.reshape(array.shape[:-1] + (1,) * keepdims)
    return reduce_folded(np.multiply, array, axes, array.dtype, keepdims)


def _multiply_halves(rows: Array) -> Array:
    while rows.shape[1] > _SHORT:
        half = rows.shape[1] // 2
        product = np.multiply(rows[:, :half], rows[:, half : 2 * half])
        if rows.shape[1] % 2:
            np.multiply(product[:, 0], rows[:, -1], out=product[:, 0])
        rows = product
    result: Array = np.multiply.reduce(rows, 1, rows.dtype)
    return result


__all__ = ["multiply_folded", "reduce_along", "reduce_folded"]
