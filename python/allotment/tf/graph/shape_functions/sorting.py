"""Shapes of sorted, largest and different elements."""

from typing import Any

from allotment.tf.ops.inference.shape_functions import Inference, Output, number, shape_function


@shape_function("TopKV2")
def _top_k(c: Inference, k: Any, axis: Any, descending: bool, dtype: Any) -> list[Output]:
    dims = c.at_least(0, 1)
    if dims is None:
        return [(c.dtype(), None), (dtype, None)]
    place = c.axis(axis, len(dims))
    count = None if k is None else number(k)
    if place is None or k is None:
        return [(c.dtype(), dims), (dtype, dims)]
    length = dims[place]
    if count is not None and count < 0:
        c.refuse(f"Need k >= 0, got {count}")
    if count is not None and length is not None and length < count:
        c.refuse(f"input must have last dimension >= k = {count} but is {length}")
    made = (*dims[:place], count, *dims[place + 1 :])
    return [(c.dtype(), made), (dtype, made)]


@shape_function("Unique")
def _unique(c: Inference, dtype: Any) -> list[Output]:
    (length,) = c.ranked(0, 1)
    return [(c.dtype(), (None,)), (dtype, (length,))]


@shape_function("UniqueWithCounts")
def _unique_with_counts(c: Inference, dtype: Any) -> list[Output]:
    # Whether it is a vector is left to the session, as in TensorFlow.
    return [(c.dtype(), (None,)), (dtype, c.shape()), (dtype, (None,))]


@shape_function("LowerBound", "UpperBound")
def _bound(c: Inference, side: str, dtype: Any) -> list[Output]:
    rows, values = c.at_least(0, 1), c.at_least(1, 1)
    if rows is not None and values is not None:
        c.merged(rows[:-1], values[:-1])
    return c.one(values, dtype)


__all__: list[str] = []
