"""Gradients of slices sorted into several tensors and back, of sorting, and of what returns its inputs."""

from typing import Any

from allotment.tf.ops.arguments.integers import axis_of
from allotment.tf.ops.array.array import cast, shape, size
from allotment.tf.ops.array.creation import reshape
from allotment.tf.ops.array.layout import transpose
from allotment.tf.ops.array.sequences import range as range_of
from allotment.tf.ops.autodiff.broadcasting import length_of, lengths_of, shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.control.assertions import check_numerics
from allotment.tf.ops.indexing.gathering import gather
from allotment.tf.ops.indexing.partition import dynamic_partition, dynamic_stitch
from allotment.tf.ops.indexing.scattering import scatter_nd
from allotment.tf.ops.reduction.reduce import reduce_prod


@gradient("IdentityN", inputs=False)
def _identity_n(call: Call, *upstream: Any) -> list[Any]:
    return list(upstream)


@gradient("CheckNumerics", inputs=False)
def _check_numerics(call: Call, upstream: Any) -> Any:
    return check_numerics(
        upstream, "Not a number (NaN) or infinity (Inf) values detected in gradient. " + call.args[0]
    )


@gradient("DynamicPartition", inputs=(1,))
def _partition(call: Call, *upstream: Any) -> Any:
    data, partitions = call.inputs
    places = reshape(range_of(size(partitions)), shape_of(partitions))
    sorted_places = dynamic_partition(places, partitions, len(upstream))
    rows = dynamic_stitch(sorted_places, list(upstream))
    return reshape(rows, shape_of(data))


@gradient("DynamicStitch")
def _stitch(call: Call, upstream: Any) -> list[Any]:
    places = call.inputs[len(call.inputs) // 2 :]
    return [gather(upstream, each) for each in places]


@gradient("TopKV2", inputs=False, outputs=(1,))
def _top_k(call: Call, upstream: Any, _: Any) -> Any:
    x, places = call.inputs[0], call.outputs[1]
    axis = call.args[1]
    if axis == -1:
        return reshape(_scattered(places, upstream, length_of(x, -1)), shape_of(x))
    lengths = lengths_of(x)
    axis = axis_of(axis, len(lengths))
    # Rows of the axis, each scattered by itself.
    order = [each for each in range(len(lengths)) if each != axis] + [axis]
    flat = _scattered(transpose(places, order), transpose(upstream, order), lengths[axis])
    turned = reshape(flat, [lengths[each] for each in order])
    return transpose(turned, sorted(range(len(order)), key=order.__getitem__))


def _scattered(places: Any, slopes: Any, length: Any) -> Any:
    """Rows of zeros with the elements of other rows at places, one row after the other."""
    known = places.shape[:-1].num_elements()
    count = reduce_prod(shape(places)[:-1]) if known is None else known
    # The places of one row count on from those of the one before.
    first = reshape(range_of(count, dtype=places._dtype) * cast(length, places._dtype), [-1, 1])
    rows = reshape(reshape(places, [count, length_of(places, -1)]) + first, [-1, 1])
    return scatter_nd(rows, reshape(slopes, [-1]), [count * length])


__all__: list[str] = []
