"""Operations that find equal elements, and places in sorted ones."""

from typing import Any, NamedTuple

import numpy as np

from allotment.tf.ops.arrays import Array, full, is_host
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.table import operation
from allotment.tf.ops.types.element_types import check_attribute
from allotment.tf.tensors.dtype import DType, as_dtype, int32
from allotment.tf.tensors.tensor import EagerTensor


class Unique(NamedTuple):
    """The different elements, and which of them stood where."""

    y: EagerTensor
    idx: EagerTensor


class UniqueWithCounts(NamedTuple):
    """The different elements, which of them stood where, and how often each did."""

    y: EagerTensor
    idx: EagerTensor
    count: EagerTensor  # type: ignore[assignment]  # the name TensorFlow has


def _vector_fault(array: Array, dtype: DType) -> str | None:
    return None if array.ndim == 1 else "unique expects a 1D vector."


def _unique(array: Array, dtype: DType) -> tuple[Array, Array, Array]:
    wanted = dtype.numpy
    if not array.size:
        nothing = np.empty(0, wanted, like=array)
        return array.copy(), nothing, nothing.copy()
    whole = array.dtype.kind in "iu" and is_host(array)
    low = int(array.min()) if whole else 0
    if whole and int(array.max()) - low <= 2 * array.size:
        wide = array.dtype if array.dtype.kind == "u" else np.dtype(np.int64)
        numbers = np.subtract(array, wide.type(low), dtype=wide).astype(np.intp, copy=False)
        first, which, counts = _groups_of_integers(numbers)
    else:
        first, which, counts = _groups(array)
    # Wanted is the order in which they come up first.
    order = np.argsort(first)
    rank = np.empty(len(first), wanted, like=array)
    rank[order] = np.arange(len(first), dtype=wanted, like=array)
    return array[first[order]], rank[which], counts[order].astype(wanted)


def _groups(array: Array) -> tuple[Array, Array, Array]:
    """The first place of each group of equal elements, the group of each element, and how many a group has."""
    # Of the elements of a group, a stable sort has the first one first; NumPy has faster ones, and ``reduceat``.
    order = np.argsort(array) if is_host(array) else np.argsort(array, kind="stable")
    ordered = array[order]
    # A NaN is equal to nothing.
    changes = full(len(ordered), 1, np.bool_, like=array)
    np.not_equal(ordered[1:], ordered[:-1], out=changes[1:])
    starts = np.flatnonzero(changes)
    counts = np.diff(starts, append=array.size)
    which = np.empty(array.size, np.intp, like=array)
    which[order] = np.cumsum(changes) - 1
    if not is_host(array):
        return order[starts], which, counts
    return np.minimum.reduceat(order, starts), which, counts


def _groups_of_integers(numbers: Array) -> tuple[Array, Array, Array]:
    """The same of numbers from 0 on, of which there are not many more than elements."""
    count = np.bincount(numbers)
    first = np.empty(len(count), np.intp)
    # Of assignments to one place the last stays.
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    present = np.flatnonzero(count)
    group = np.empty(len(count), np.intp)
    group[present] = np.arange(len(present))
    return first[present], group[numbers], count[present]


def _unique_shape(c: Inference, dtype: Any) -> list[Output]:
    (length,) = c.ranked(0, 1)
    return [(c.dtype(), (None,)), (dtype, (length,))]


def _unique_with_counts_shape(c: Inference, dtype: Any) -> list[Output]:
    # Whether it is a vector is left to the session, as in TensorFlow.
    return [(c.dtype(), (None,)), (dtype, c.shape()), (dtype, (None,))]


_unique_row = operation(
    "Unique", lambda array, dtype: _unique(array, dtype)[:2], shape=_unique_shape, fault=_vector_fault
)


_unique_with_counts_row = operation(
    "UniqueWithCounts", _unique, shape=_unique_with_counts_shape, fault=_vector_fault
)


def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> Unique:
    """The different elements of a vector, in the order in which they come up. As ``tf.unique``.

    Raises:
        InvalidArgumentError: It is no vector.
    """
    return Unique(*run(_unique_row, (to_tensor(x),), _numbers("Unique", out_idx, name), name=name))


def unique_with_counts(x: Any, out_idx: Any = int32, name: str | None = None) -> UniqueWithCounts:
    """The different elements of a vector and how often each comes up. As ``tf.unique_with_counts``.

    Raises:
        InvalidArgumentError: It is no vector.
    """
    wanted = _numbers("UniqueWithCounts", out_idx, name)
    return UniqueWithCounts(*run(_unique_with_counts_row, (to_tensor(x),), wanted, name=name))


def _numbers(op: str, dtype: Any, name: str | None) -> DType:
    wanted = as_dtype(dtype)
    check_attribute(op, "out_idx" if op.startswith("Unique") else "out_type", wanted, name)
    return wanted


def _bound_fault(array: Array, values: Array, side: str, dtype: DType) -> str | None:
    if array.ndim < 1 or values.ndim < 1:
        return "slice index -1 of dimension 0 out of bounds."
    if array.shape[:-1] != values.shape[:-1]:
        return "Leading dim_size of both tensors must match."
    return None


def _bound(array: Array, values: Array, side: Any, dtype: DType) -> Array:
    found = np.empty(values.shape, dtype.numpy, like=values)
    for row in np.ndindex(array.shape[:-1]):
        found[row] = np.searchsorted(array[row], values[row], side)
    if side == "left" and values.dtype.kind == "f":
        # No element is less than a NaN.
        found[np.isnan(values)] = 0
    return found


def _bound_shape(c: Inference, side: str, dtype: Any) -> list[Output]:
    rows, values = c.at_least(0, 1), c.at_least(1, 1)
    if rows is not None and values is not None:
        c.merged(rows[:-1], values[:-1])
    return c.one(values, dtype)


_lower_row = operation("LowerBound", _bound, shape=_bound_shape, fault=_bound_fault)


_upper_row = operation("UpperBound", _bound, shape=_bound_shape, fault=_bound_fault)


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = int32, name: str | None = None
) -> EagerTensor:
    """Return the positions at which values would be inserted into sorted rows. As ``tf.searchsorted``.

    Raises:
        ValueError: ``side`` is neither ``"left"`` nor ``"right"``.
        InvalidArgumentError: There are not as many rows of values as of sorted elements.
    """
    if side not in ("left", "right"):
        raise ValueError(f"Argument `side` must be either 'right' or 'left'. Received: `side` = '{side}'.")
    row = _lower_row if side == "left" else _upper_row
    rows = to_tensor(sorted_sequence)
    inputs = rows, to_tensor(values)
    return run(row, inputs, side, _numbers(row.name, out_type, name), name=name)  # type: ignore[no-any-return]


__all__ = ["Unique", "UniqueWithCounts", "searchsorted", "unique", "unique_with_counts"]
