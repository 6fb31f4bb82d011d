"""Gradients of reductions over segments."""

from typing import Any

from allotment.ops.array import cast, ones_like, zeros_like
from allotment.ops.comparison import equal, greater_equal
from allotment.ops.creation import reshape
from allotment.ops.differentiation import Call, gradient
from allotment.ops.division import divide_no_nan
from allotment.ops.gathering import gather, where
from allotment.ops.math import maximum
from allotment.ops.segments import unsorted_segment_prod, unsorted_segment_sum


def _count(call: Call) -> Any:
    """How many segments there are."""
    return call.args[0] if call.args else call.outputs[0].shape[0]


def _picked(call: Call, values: Any) -> Any:
    """What belongs to the segment of each row; nothing to the rows of none."""
    ids = call.inputs[1]
    if not call.args:
        return gather(values, ids)
    kept = greater_equal(ids, 0)
    rows = gather(values, maximum(ids, 0))
    rank = rows.shape.rank
    mask = reshape(kept, list(ids.shape) + [1] * (rank - ids.shape.rank))
    return where(mask, rows, zeros_like(rows))


@gradient("SegmentSum", "UnsortedSegmentSum")
def _sum(call: Call, upstream: Any) -> Any:
    return _picked(call, upstream)


@gradient("SegmentMean")
def _mean(call: Call, upstream: Any) -> Any:
    data, ids = call.inputs
    rows = unsorted_segment_sum(ones_like(cast(ids, upstream._dtype)), ids, _count(call))
    counts = reshape(maximum(rows, 1), [-1] + [1] * (data.shape.rank - 1))
    return _picked(call, upstream / counts)


@gradient("SegmentMax", "SegmentMin", "UnsortedSegmentMax", "UnsortedSegmentMin", outputs=True)
def _extreme(call: Call, upstream: Any) -> Any:
    data, ids = call.inputs
    chosen = cast(equal(data, _picked(call, call.outputs[0])), upstream._dtype)
    # Equal elements of a segment share it.
    counts = unsorted_segment_sum(chosen, ids, _count(call))
    return chosen * _picked(call, divide_no_nan(upstream, counts))


@gradient("SegmentProd", "UnsortedSegmentProd", outputs=True)
def _prod(call: Call, upstream: Any) -> Any:
    data, ids = call.inputs
    zero = equal(data, 0)
    zeros = unsorted_segment_sum(cast(zero, upstream._dtype), ids, _count(call))
    # The product of the others: of all that are not zero where the element is the one zero of its segment.
    others = unsorted_segment_prod(where(zero, ones_like(data), data), ids, _count(call))
    one = equal(_picked(call, zeros), 1)
    alone = where(one, _picked(call, others), zeros_like(data))
    rest = divide_no_nan(_picked(call, call.outputs[0]), where(zero, ones_like(data), data))
    return _picked(call, upstream) * where(zero, alone, rest)


__all__: list[str] = []
