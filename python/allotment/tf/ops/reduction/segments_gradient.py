"""Gradients of reductions over segments."""

from typing import Any

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.creation import ones_like, zeros_like
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import reshape
from allotment.tf.ops.array.shapes import shape, size
from allotment.tf.ops.autodiff.broadcasting import lengths_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.deferred import operand
from allotment.tf.ops.indexing.gathering import gather
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.math.arithmetic import maximum
from allotment.tf.ops.math.comparison import equal, greater_equal
from allotment.tf.ops.math.division import divide_no_nan
from allotment.tf.ops.reduction.segments import (
    segment_prod,
    segment_sum,
    unsorted_segment_prod,
    unsorted_segment_sum,
)


def _added(call: Call, rows: Any) -> Any:
    """Add up rows by the segments of the call."""
    ids = call.inputs[1]
    return unsorted_segment_sum(rows, ids, operand(call.args[0])) if call.args else segment_sum(rows, ids)


def _picked(call: Call, values: Any) -> Any:
    """Return for each row the value of its segment; zeros for rows without a segment."""
    ids = call.inputs[1]
    if not call.args:
        return gather(values, ids)
    kept = greater_equal(ids, 0)
    rows = gather(values, maximum(ids, 0))
    return where(_beside(kept, rows), rows, zeros_like(rows))


def _beside(numbers: Any, rows: Any) -> Any:
    """A number for each row, with axes of length 1 in the place of those of the rows."""
    ranks = numbers.shape.rank, rows.shape.rank
    if None not in ranks:
        return reshape(numbers, [*lengths_of(numbers), *[1] * (ranks[1] - ranks[0])])
    lengths = shape(numbers)
    return reshape(numbers, concat([lengths, ones_like(shape(rows)[size(lengths) :])], 0))


@gradient("SegmentSum", "UnsortedSegmentSum", inputs=(1,))
def _sum(call: Call, upstream: Any) -> Any:
    return _picked(call, upstream)


@gradient("SegmentMean", inputs=(1,))
def _mean(call: Call, upstream: Any) -> Any:
    rows = maximum(_added(call, ones_like(call.inputs[1])), 1)
    counts = _beside(cast(rows, upstream._dtype), upstream)
    return _picked(call, upstream / counts)


@gradient("SegmentMax", "SegmentMin", "UnsortedSegmentMax", "UnsortedSegmentMin", outputs=True)
def _extreme(call: Call, upstream: Any) -> Any:
    data = call.inputs[0]
    chosen = cast(equal(data, _picked(call, call.outputs[0])), upstream._dtype)
    # Equal elements of a segment share it.
    counts = _added(call, chosen)
    return chosen * _picked(call, divide_no_nan(upstream, counts))


@gradient("SegmentProd", "UnsortedSegmentProd", outputs=True)
def _prod(call: Call, upstream: Any) -> Any:
    data, ids = call.inputs
    zero = equal(data, 0)
    zeros = _added(call, cast(zero, upstream._dtype))
    # The product of the others: of all that are not zero where the element is the one zero of its segment.
    others = where(zero, ones_like(data), data)
    rest = (
        unsorted_segment_prod(others, ids, operand(call.args[0])) if call.args else segment_prod(others, ids)
    )
    one = equal(_picked(call, zeros), 1)
    alone = where(one, _picked(call, rest), zeros_like(data))
    beside = _picked(call, call.outputs[0]) / others
    return _picked(call, upstream) * where(zero, alone, beside)


__all__: list[str] = []
