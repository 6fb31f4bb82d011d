"""Operations that pick elements by truth values."""

import math
from typing import Any

import numpy as np

from allotment.tf.ops import faults
from allotment.tf.ops.arguments.integers import axis_of, number_argument
from allotment.tf.ops.arrays import Array, owned
from allotment.tf.ops.blocks import choose
from allotment.tf.ops.convert import to_pair, to_tensor
from allotment.tf.ops.deferred import Deferred, is_known
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.slicing import whole_axes
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.dtype import int64
from allotment.tf.tensors.tensor import EagerTensor, Tensor


def _masked(array: Array, mask: Array, axis: int) -> Array:
    first = axis_of(axis, array.ndim)
    covered = array.shape[first : first + mask.ndim]
    if covered == mask.shape:
        return owned(array[(*whole_axes(first), mask.astype(np.bool_, copy=False))])
    # A graph did not know the lengths: TensorFlow counts through the axes that the mask covers.
    flat = array.reshape(*array.shape[:first], math.prod(covered), *array.shape[first + mask.ndim :])
    return np.take(flat, np.flatnonzero(mask), first)


def _mask_fault(array: Array, mask: Array, axis: int) -> str | None:
    first = axis_of(axis, array.ndim)
    count, chosen = math.prod(array.shape[first : first + mask.ndim]), np.flatnonzero(mask)
    if chosen.size and chosen[-1] >= count:
        which = int(np.argmax(chosen >= count))
        return f"indices[{which}] = {chosen[which]} is not in [0, {count})"
    return None


def _mask_shape(c: Inference, axis: Any) -> list[Output]:
    dims, mask = c.shape(0), c.shape(1)
    if mask is None:
        return c.one(None)
    if dims is None or type(axis) is Deferred:
        return c.one(None)
    place = axis + len(dims) if axis < 0 else axis
    c.merged(dims[place : place + len(mask)], mask)
    return c.one((*dims[:place], None, *dims[place + len(mask) :]))


_mask_row = operation("BooleanMask", _masked, shape=_mask_shape, fault=_mask_fault, same_dtype=False)


@in_name_scope("boolean_mask", "GatherV2")
def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> EagerTensor:
    """Keep the slices for which a mask is true. As ``tf.boolean_mask``.

    The mask covers the axes from ``axis`` on; they become one.

    Raises:
        ValueError: The mask is a scalar, or has not the shape of the axes it covers.
    """
    array, condition = to_tensor(tensor), to_tensor(mask)
    place, dims, shape = 0 if axis is None else number_argument(axis, "axis"), array.shape, condition.shape
    if shape.rank is None:
        raise ValueError(
            "Number of mask dimensions must be specified, even if some dimensions are None.  E.g. shape=[None] is ok, "
            "but shape=None is not."
        )
    if shape.rank == 0:
        raise ValueError("mask cannot be scalar.")
    if dims.rank is not None and is_known(place):
        # An axis that is counted from the end must leave one behind the mask, as in TensorFlow.
        dims[place : place + shape.rank].assert_is_compatible_with(shape)
        place = axis_of(place, dims.rank)
    return run(_mask_row, (array, condition), place, name=name)  # type: ignore[no-any-return]


def _where_fault(condition: Array) -> str | None:
    if condition.dtype == np.float16:
        return faults.Unimplemented("No WhereOp available for float16/half type on CPU")
    return None if condition.ndim else "WhereOp : Unhandled input dimensions: 0"


def _where_shape(c: Inference) -> list[Output]:
    dims = c.shape()
    return c.one((None, None if dims is None else len(dims)), int64)


_where = operation(
    "Where",
    lambda condition: owned(np.argwhere(condition)),
    shape=_where_shape,
    fault=_where_fault,
)


def _select_fault(condition: Array, x: Array, y: Array) -> str | None:
    try:
        np.broadcast_shapes(condition.shape, x.shape, y.shape)
    except ValueError:
        return f"condition {dims(condition)}, then {dims(x)}, and else {dims(y)} must be broadcastable"
    return None


def _select_shape(c: Inference) -> list[Output]:
    dims = c.broadcast(c.shape(1), c.shape(2))
    return c.one(c.broadcast(c.shape(0), dims), c.dtype(1))


_select = operation("SelectV2", choose, shape=_select_shape, fault=_select_fault)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> EagerTensor:
    """Pick elements of ``x`` where a condition is true, else of ``y``; or say where it is true. As ``tf.where``.

    With ``condition`` alone the result has one row for each true (or not zero) element: its place, as int64.

    Raises:
        ValueError: Only one of ``x`` and ``y`` is given.
        InvalidArgumentError: The shapes do not go together.
    """
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    if x is None:
        return run(_where, (to_tensor(condition),), name=name)  # type: ignore[no-any-return]
    test: Any = condition if isinstance(condition, Tensor) else to_tensor(condition, like=bool_)
    x, y = to_pair(x, y)
    if test._dtype is not bool_:
        raise faults.mismatched("SelectV2", 0, bool_, test._dtype, name)
    if x._dtype is not y._dtype:
        raise faults.mismatched("SelectV2", 2, x._dtype, y._dtype, name)
    return run(_select, (test, x, y), name=name)  # type: ignore[no-any-return]


__all__ = ["boolean_mask", "where"]
