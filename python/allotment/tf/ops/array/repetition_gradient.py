"""Gradients of operations that repeat elements."""

from typing import Any

from allotment.tf.ops.arguments.integers import axis_of
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.joining import concat, stack
from allotment.tf.ops.array.layout import reshape, transpose
from allotment.tf.ops.array.repetition import repeat
from allotment.tf.ops.array.shapes import size
from allotment.tf.ops.autodiff.broadcasting import length_of, lengths_of, shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.deferred import is_known, listed
from allotment.tf.ops.indexing.partition import invert_permutation
from allotment.tf.ops.math.sequences import range as range_of
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.ops.reduction.segments import unsorted_segment_sum
from allotment.tf.tensors.dtype import int32


@gradient("Tile", inputs=False)
def _tile(call: Call, upstream: Any) -> Any:
    (multiples,) = call.args
    lengths = shape_of(call.inputs[0])
    if type(lengths) is tuple and is_known(multiples):
        apart = [each for pair in zip(multiples, lengths, strict=True) for each in pair]
        return reduce_sum(reshape(upstream, apart), list(range(0, len(apart), 2)))
    times = cast(listed(multiples), int32)
    both = stack([times, listed(lengths) if type(lengths) is tuple else lengths])
    pairs = reshape(transpose(both), [-1])
    return reduce_sum(reshape(upstream, pairs), range_of(0, size(pairs), 2))


@gradient("Repeat", inputs=False)
def _repeat(call: Call, upstream: Any) -> Any:
    times, axis = call.args
    x = call.inputs[0]
    if x.shape.rank is None:
        rows, every = length_of(x, axis), range_of(size(shape_of(x)))
        order: Any = concat([every[axis : axis + 1], every[:axis], every[axis + 1 :]], 0)
        places = repeat(range_of(rows), listed(times), 0)
        return transpose(
            unsorted_segment_sum(transpose(upstream, order), places, rows), invert_permutation(order)
        )
    lengths = lengths_of(x)
    axis = axis_of(axis, len(lengths))
    if is_known(times) and len(times) == 1:
        apart = [*lengths[: axis + 1], times[0], *lengths[axis + 1 :]]
        return reduce_sum(reshape(upstream, apart), axis + 1)
    order = [axis, *(each for each in range(len(lengths)) if each != axis)]
    rows = lengths[axis]
    # Each row was said as often as the numbers tell; one number counts for all rows.
    places = repeat(range_of(rows), listed(times), 0)
    summed = unsorted_segment_sum(transpose(upstream, order), places, rows)
    return transpose(summed, sorted(range(len(order)), key=order.__getitem__))


__all__: list[str] = []
