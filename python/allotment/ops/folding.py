"""Reductions that NumPy would make with short inner loops, made with long ones.

NumPy reduces the leading axes of an array row by row: with few elements in a row, the loops cost more than the
elements. Several rows together are one long row; what is left is as many rows as there were in one.
"""

import math
from typing import Any, Final

import numpy as np

from allotment.ops.arrays import Array
from allotment.ops.axes import Axes

#: Smaller arrays are reduced as they are.
_LARGE: Final = 1 << 14
#: Elements of a long row, and of one that is long enough as it is.
_ROW: Final = 1 << 12
_LONG: Final = 1 << 8


def reduce_folded(
    ufunc: np.ufunc, array: Array, axes: Axes, dtype: Any, keepdims: bool, **kwargs: Any
) -> Any:
    """Reduce along axes as ``ufunc.reduce`` does."""
    lead = None if array.size < _LARGE or not axes else _leading(axes, array.ndim)
    if lead is not None and array.flags.c_contiguous:
        rest = array.shape[lead:]
        width = math.prod(rest)
        if 0 < width < _LONG:
            result = _reduce_rows(ufunc, array.reshape(-1, width), dtype, kwargs)
            return result.reshape((1,) * lead + rest if keepdims else rest)
    return ufunc.reduce(array, axes, dtype, keepdims=keepdims, **kwargs)


def _leading(axes: tuple[int, ...], rank: int) -> int | None:
    """How many of the first axes these are, in any order, if there is one behind them."""
    places = sorted(axis % rank for axis in axes)
    return len(axes) if len(axes) < rank and places == list(range(len(axes))) else None


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
    if array.size >= _LARGE and array.flags.c_contiguous:
        if axes is None or len(axes) == array.ndim:
            result = _reduce_rows(np.multiply, array.reshape(-1, 1), array.dtype, {})
            return result.reshape((1,) * array.ndim if keepdims else ())
        length = array.shape[-1]
        if len(axes) == 1 and axes[0] % array.ndim == array.ndim - 1 and length >= _LONG:
            eighth = length // 8
            rows = array.reshape(-1, length)
            part = np.multiply.reduce(rows[:, : 8 * eighth].reshape(len(rows), 8, eighth), 1, array.dtype)
            result = np.multiply.reduce(part, 1, array.dtype)
            if 8 * eighth < length:
                np.multiply(result, np.multiply.reduce(rows[:, 8 * eighth :], 1, array.dtype), out=result)
            return result.reshape(array.shape[:-1] + ((1,) if keepdims else ()))
    return reduce_folded(np.multiply, array, axes, array.dtype, keepdims)


__all__ = ["multiply_folded", "reduce_folded"]
