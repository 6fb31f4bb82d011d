"""Shapes of numbers in order, and of layers' small operations."""

import math
from typing import Any

import numpy as np

from allotment.tf.ops.inference.shape_functions import Inference, Output, number, shape_function
from allotment.tf.tensors.dtype import BY_NUMPY, float64
from allotment.tf.tensors.dtype import bool as bool_


@shape_function("Range")
def _range(c: Inference) -> list[Output]:
    for index in range(3):
        c.ranked(index, 0)
    values = [c.value(index) for index in range(3)]
    if any(each is None for each in values):
        return c.one((None,))
    start, limit, delta = values
    if delta == 0:
        c.refuse("Requires delta != 0")
    if (delta > 0 and start > limit) or (delta < 0 and start < limit):
        sign, order = (">", "<=") if delta > 0 else ("<", ">=")
        c.refuse(f"Requires start {order} limit when delta {sign} 0: {start}/{limit}")
    if c.dtype().is_integer:
        return c.one((len(range(int(start), int(limit), int(delta))),))
    return c.one((math.ceil(np.abs((limit - start) / delta)),))


@shape_function("LinSpace")
def _linspace(c: Inference, num: Any, axis: Any) -> list[Output]:
    dims, count = c.broadcast(c.shape(0), c.shape(1)), number(num)
    if count is not None and count < 0:
        c.refuse(f"Requires num >= 0, not {count}")
    if dims is None:
        return c.one(None)
    place = c.axis(axis, len(dims) + 1)
    if place is None:
        return c.one((None,) * (len(dims) + 1))
    return c.one((*dims[:place], count, *dims[place:]))


@shape_function("SequenceMask")
def _sequence_mask(c: Inference, limit: Any) -> list[Output]:
    dims, count = c.shape(), number(limit)
    if count is not None and count < 0:
        c.refuse(f"maxlen must be >= 0, but got {count}")
    return c.one(None if dims is None else (*dims, count), bool_)


@shape_function("BiasAdd")
def _bias(c: Inference, axis: int) -> list[Output]:
    dims, (biases,) = c.at_least(0, 3 if axis == 1 else 2), c.ranked(1, 1)
    if dims is None:
        return c.one(None)
    place = axis % len(dims)
    return c.one((*dims[:place], c.same(dims[place], biases), *dims[place + 1 :]))


@shape_function("InTopKV2")
def _in_top_k(c: Inference, k: Any) -> list[Output]:
    (rows, _), (targets,) = c.ranked(0, 2), c.ranked(1, 1)
    return c.one((c.same(rows, targets),), bool_)


@shape_function("Softmax", "LogSoftmax")
def _softmax(c: Inference) -> list[Output]:
    return c.one(c.at_least(0, 1))


@shape_function("SoftmaxCrossEntropyWithLogits")
def _cross_entropy(c: Inference) -> list[Output]:
    logits, labels = c.at_least(0, 1), c.at_least(1, 1)
    # Where one is not known, the losses have the shape of the other.
    dims = c.broadcast(logits if logits is not None else labels, labels if labels is not None else logits)
    return c.one(None if dims is None else dims[:-1])


@shape_function("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_cross_entropy(c: Inference) -> list[Output]:
    logits = c.at_least(0, 1)
    return c.one(c.merged(None if logits is None else logits[:-1], c.shape(1)))


@shape_function("DenseBincount")
def _bincount(
    c: Inference, dtype: Any, minlength: Any, maxlength: Any, by_row: bool, binary: bool
) -> list[Output]:
    result = BY_NUMPY[np.dtype(dtype)]
    dims = c.shape()
    if by_row and dims is not None and len(dims) > 2:
        c.refuse(f"Shape must be at most rank 2 but is rank {len(dims)}")
    if len(c.inputs) > 1:
        c.merged(dims, c.shape(1))
    # Between both bounds the largest number decides.
    count = number(minlength) if minlength is not None and minlength is maxlength else None
    if not by_row:
        return c.one((count,), result)
    return c.one(None if dims is None else (dims[0], count) if len(dims) == 2 else (count,), result)


@shape_function("Timestamp")
def _timestamp(c: Inference) -> list[Output]:
    return [(float64, ())]


__all__: list[str] = []
