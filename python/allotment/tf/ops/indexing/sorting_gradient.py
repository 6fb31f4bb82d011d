"""Gradient of the largest elements."""

from typing import Any

from allotment.tf.ops.arguments.integers import axis_of
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import reshape, transpose
from allotment.tf.ops.array.shapes import shape, size
from allotment.tf.ops.autodiff.broadcasting import length_of, lengths_of, shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.indexing.gathering import gather
from allotment.tf.ops.indexing.partition import invert_permutation
from allotment.tf.ops.indexing.scattering import scatter_nd
from allotment.tf.ops.math.sequences import range as range_of
from allotment.tf.ops.reduction.reduce import reduce_prod


@gradient("TopKV2", inputs=False, outputs=(1,))
def _top_k(call: Call, upstream: Any, _: Any) -> Any:
    x, places = call.inputs[0], call.outputs[1]
    axis = call.args[1]
    if axis == -1:
        return reshape(_scattered(places, upstream, length_of(x, -1)), shape_of(x))
    order: Any
    back: Any
    lengths: Any
    if x.shape.rank is None:
        every = range_of(size(shape(x)))
        order = concat([every[:axis], every[axis + 1 :], every[axis : axis + 1]], 0)
        back, lengths = invert_permutation(order), gather(shape(x), order)
    else:
        axis = axis_of(axis, x.shape.rank)
        order = [each for each in range(x.shape.rank) if each != axis] + [axis]
        back, known = sorted(range(len(order)), key=order.__getitem__), lengths_of(x)
        lengths = [known[each] for each in order]
    # Rows of the axis, each scattered by itself.
    flat = _scattered(transpose(places, order), transpose(upstream, order), length_of(x, axis))
    return transpose(reshape(flat, lengths), back)


def _scattered(places: Any, slopes: Any, length: Any) -> Any:
    """Rows of zeros with the elements of other rows at places, one row after the other."""
    known = places.shape[:-1].num_elements()
    count = reduce_prod(shape(places)[:-1]) if known is None else known
    # The places of one row count on from those of the one before.
    first = reshape(range_of(count, dtype=places._dtype) * cast(length, places._dtype), [-1, 1])
    rows = reshape(reshape(places, [count, length_of(places, -1)]) + first, [-1, 1])
    return scatter_nd(rows, reshape(slopes, [-1]), [count * length])


__all__: list[str] = []
