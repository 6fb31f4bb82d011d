"""Gradients of slices sorted into several tensors and back, of sorting, and of what returns its inputs."""

import math
from typing import Any

from allotment.ops.arguments import axis_of
from allotment.ops.array import size
from allotment.ops.assertions import check_numerics
from allotment.ops.creation import reshape
from allotment.ops.differentiation import Call, gradient
from allotment.ops.gathering import gather
from allotment.ops.gradients.broadcasting import lengths_of, shape_of
from allotment.ops.layout import transpose
from allotment.ops.partition import dynamic_partition, dynamic_stitch
from allotment.ops.scattering import scatter_nd
from allotment.ops.sequences import range as range_of


@gradient("IdentityN", inputs=False)
def _identity_n(call: Call, *upstream: Any) -> list[Any]:
    return list(upstream)


@gradient("CheckNumerics", inputs=False)
def _check_numerics(call: Call, upstream: Any) -> Any:
    return check_numerics(
        upstream, "Not a number (NaN) or infinity (Inf) values detected in gradient. " + call.args[0]
    )


@gradient("DynamicPartition")
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


@gradient("TopKV2", outputs=True)
def _top_k(call: Call, upstream: Any, _: Any) -> Any:
    x, places = call.inputs[0], call.outputs[1]
    lengths = lengths_of(x)
    axis = axis_of(call.args[1], len(lengths))
    length = int(lengths[axis])
    # Rows of the axis, each scattered by itself: the places of one count on from those of the one before.
    order = [each for each in range(len(lengths)) if each != axis] + [axis]
    rows = math.prod(int(lengths[each]) for each in order[:-1])
    found, slopes = (reshape(transpose(each, order), [rows, -1]) for each in (places, upstream))
    first = reshape(range_of(rows, dtype=found._dtype) * length, [rows, 1])
    flat = scatter_nd(reshape(found + first, [-1, 1]), reshape(slopes, [-1]), [rows * length])
    turned = reshape(flat, [lengths[each] for each in order])
    return transpose(turned, sorted(range(len(order)), key=order.__getitem__))


__all__: list[str] = []
