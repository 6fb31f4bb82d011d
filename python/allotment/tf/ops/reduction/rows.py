"""Reductions of rows into the rows of a result, by number."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from allotment.tf.ops.arrays import Array, full, is_host
from allotment.tf.ops.blocks import BLOCK

#: From as many elements a segment on, one call of NumPy for each segment costs less than ``reduceat``.
_LARGE: Final = 1 << 11


def reduce_at(ufunc: np.ufunc, result: Array, numbers: Array, rows: Array) -> None:
    """Reduce each row into the row of a contiguous result that its number names, one row after the other.

    ``ufunc.at`` has a fast path for vectors only: it gets the number of each element, a block of them at a time.
    """
    if not rows.size:
        return
    if not is_host(result):
        _reduce_on_device(ufunc, result, numbers, rows)
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


#: The types of CuPy's ``add.at``; its ``maximum.at`` and ``minimum.at`` take all of them but halves.
_ATOMIC: Final = "ilqILQefd"


def _reduce_on_device(ufunc: np.ufunc, result: Array, numbers: Any, rows: Array) -> None:
    """Reduce rows with atomic operations of a GPU, in any order; in a wider type if the GPU has none for the type.

    Raises:
        NotImplementedError: The GPU has no such operation; ``host_only`` lists the rows.
    """
    if ufunc is np.subtract:
        ufunc, rows = np.add, np.negative(rows)
    letter = result.dtype.char
    if result.dtype.kind == "c":
        for part, of_rows in ((result.real, rows.real), (result.imag, rows.imag)):
            _reduce_on_device(ufunc, part, numbers, of_rows)
    elif letter in _ATOMIC and (ufunc is np.add or letter != "e"):
        ufunc.at(result, numbers, rows)
    else:
        wide = result.astype(np.float32 if letter == "e" else np.int64)
        ufunc.at(wide, numbers, rows)
        result[...] = wide.astype(result.dtype)


def at(ufunc: np.ufunc) -> Callable[[Array, Any, Array], None]:
    """Make a function that is ``ufunc.at``, for a contiguous array, and fast for rows, too.

    It takes places as NumPy does: numbers along the first axis, a tuple of them for the first axes, or ``...``.
    """

    def change(array: Array, places: Any, updates: Array) -> None:
        if places is ...:
            ufunc(array, updates, out=array)
        elif not is_host(array):
            if isinstance(places, tuple | list):
                # CuPy is given no tuple through NumPy.
                lead = len(places)
                places = np.ravel_multi_index(tuple(places), array.shape[:lead])
                array = array.reshape(-1, *array.shape[lead:])
            _reduce_on_device(ufunc, array, places, updates)
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
    if not is_host(result):
        if ufunc is not np.add:
            # The first row of each number, so that what stood there before has no part in an extreme.
            changes = full(numbers.shape, True, np.bool_, numbers)
            np.not_equal(numbers[1:], numbers[:-1], out=changes[1:])
            firsts = np.flatnonzero(changes)
            result[numbers[firsts]] = rows[firsts]
        _reduce_on_device(ufunc, result, numbers, rows)
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
