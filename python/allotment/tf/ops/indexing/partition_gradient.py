"""Gradients of operations that divide slices among tensors by number, and of their opposite."""

from typing import Any

from allotment.tf.ops.array.layout import reshape
from allotment.tf.ops.array.shapes import size
from allotment.tf.ops.autodiff.broadcasting import shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.indexing.gathering import gather
from allotment.tf.ops.indexing.partition import dynamic_partition, dynamic_stitch
from allotment.tf.ops.math.sequences import range as range_of


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


__all__: list[str] = []
