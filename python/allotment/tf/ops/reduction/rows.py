"""Reductions of rows into the rows of a result, by number."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from allotment.tf.ops.arrays import Array
from allotment.tf.ops.blocks import BLOCK

#: From as many elements a segment on, one call of NumPy for each segment costs less than ``reduceat``.
_LARGE: Final = 1 << 11


def reduce_at(ufunc: np.ufunc, result: Array, numbers: Array, rows: Array) -> None:
    """Reduce each row into the row of a contiguous result that its number names, one row after the other.

    ``ufunc.at`` has a fast path for vectors only: it gets the number of each element, a block of them at a time.
    """
    if not rows.size:
        return
    width = rows.size // numbers.size
    numbers, elements, flat = numbers.reshape(-1), rows.reshape(-1), result.reshape(-1)
    if width == 1:
        ufunc.at(flat, numbers, elements)
        return
    columns = np.arange(width)
    step = max(BLOCK // width, 1)
    for start in range(0, numbers.size, step):
        firsts = np.multiply(numbers[start : start + step, np.newaxis], width, dtype=np.intp)
        ufunc.at(flat, np.add(firsts, columns).reshape(-1), elements[start * width : (start + step) * width])


def at(ufunc: np.ufunc) -> Callable[[Array, Any, Array], None]:
    """Make a function that is ``ufunc.at``, for a contiguous array, and fast for rows, too.

    It takes places as NumPy does: numbers along the first axis, a tuple of them for the first axes, or ``...``.
    """

    def change(array: Array, places: Any, updates: Array) -> None:
        if places is ...:
            ufunc(array, updates, out=array)
        elif not updates.ndim:
            ufunc.at(array, places, updates)
        else:
            if type(places) is tuple:
                places = np.ravel_multi_index(places, array.shape[: len(places)])
            reduce_at(ufunc, array, places, updates)

    return change


def reduce_sorted(ufunc: np.ufunc, result: Array, numbers: Array, rows: Array) -> None:
    """Reduce rows whose numbers ascend; rows of the result that no number names stay as they are."""
    if not rows.size:
        return
    starts = np.concatenate(([0], np.flatnonzero(numbers[1:] != numbers[:-1]) + 1))
    named = numbers[starts]
    if rows.size < _LARGE * len(starts):
        result[named] = ufunc.reduceat(rows, starts, 0, rows.dtype)
        return
    ends = [*starts[1:].tolist(), len(rows)]
    for number, start, end in zip(named.tolist(), starts.tolist(), ends, strict=True):
        # `...` keeps a result of rank 0 an array.
        ufunc.reduce(rows[start:end], 0, rows.dtype, out=result[number, ...])


__all__ = ["at", "reduce_at", "reduce_sorted"]
