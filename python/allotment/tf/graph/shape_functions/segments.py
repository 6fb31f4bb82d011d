"""Shapes of reductions over rows that share a number."""

from typing import Any

from allotment.tf.ops.inference.shape_functions import Inference, Output, number, shape_function


@shape_function("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin")
def _sorted(c: Inference) -> list[Output]:
    data, _ = c.at_least(0, 1), c.ranked(1, 1)
    return c.one(None if data is None else (None, *data[1:]))


@shape_function("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin")
def _unsorted(c: Inference, count: Any) -> list[Output]:
    data, ids, length = c.shape(0), c.shape(1), number(count)
    if ids is None:
        return c.one(None)
    if data is not None and len(data) < len(ids):
        c.refuse(f"Shape must be at least rank {len(ids)} but is rank {len(data)}")
    if data is not None:
        c.merged(data[: len(ids)], ids)
    if length is not None and length < 0:
        c.refuse(f"Dimension size, given by scalar input, must be non-negative but is {length}")
    if data is None:
        return c.one(None)
    return c.one((length, *data[len(ids) :]))


__all__: list[str] = []
