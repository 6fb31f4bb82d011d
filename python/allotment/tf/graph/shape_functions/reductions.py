"""Shapes of reductions, running totals, and places of extremes."""

from typing import Any

from allotment.tf.ops.deferred import is_known
from allotment.tf.ops.inference.shape_functions import (
    Dims,
    Inference,
    Output,
    numbers,
    shape_function,
    unknown,
)
from allotment.tf.tensors.dtype import BY_NUMPY


def reduced(c: Inference, axes: Any, keepdims: bool) -> Dims:
    """The shape of the input without some axes, or with these of length 1.

    Raises:
        ValueError: The input has no such axis.
    """
    dims = c.shape()
    if is_known(axes) and axes and type(axes[0]) is tuple:
        c.refuse("Shape must be at most rank 1 but is rank 2")
    if axes is None:
        return () if not keepdims else None if dims is None else (1,) * len(dims)
    if dims is None or not is_known(axes):
        count = numbers(axes)
        if dims is None or not (keepdims or count is not None):
            return None
        return unknown(len(dims) if keepdims else max(len(dims) - len(count or ()), 0))
    rank, gone = len(dims), set()
    for axis in axes:
        if not -rank <= axis < rank:
            c.refuse(f"Invalid reduction dimension {axis} for input with {rank} dimensions.")
        gone.add(axis % rank)
    if keepdims:
        return tuple(1 if place in gone else length for place, length in enumerate(dims))
    return tuple(length for place, length in enumerate(dims) if place not in gone)


@shape_function("Sum", "Prod", "Mean", "Max", "Min", "EuclideanNorm", "Any", "All")
def _reduction(c: Inference, axes: Any, keepdims: bool) -> list[Output]:
    return c.one(reduced(c, axes, keepdims))


@shape_function("ReduceJoin")
def _reduce_join(c: Inference, axes: Any, keep: bool, separator: bytes) -> list[Output]:
    return c.one(reduced(c, axes, keep))


@shape_function("ArgMax", "ArgMin")
def _place(c: Inference, axis: Any, dtype: Any) -> list[Output]:
    dims = c.shape()
    if dims is None:
        return c.one(None, BY_NUMPY[dtype])
    if len(dims) <= 1:
        # Whether it is an axis is left to the session, as in TensorFlow.
        return c.one((), BY_NUMPY[dtype])
    place = c.axis(axis, len(dims), "Dimension")
    rest = unknown(len(dims) - 1) if place is None else dims[:place] + dims[place + 1 :]
    return c.one(rest, BY_NUMPY[dtype])


@shape_function("L2Loss")
def _l2_loss(c: Inference) -> list[Output]:
    return c.one(())


__all__ = ["reduced"]
