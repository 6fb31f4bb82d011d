"""Gradients of the operations of networks' layers."""

from typing import Any

from allotment.tf.ops.arguments.integers import axis_of
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import reshape
from allotment.tf.ops.array.shapes import shape
from allotment.tf.ops.autodiff.broadcasting import length_of, rank_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient, not_differentiable
from allotment.tf.ops.indexing.indexed_slices import dense
from allotment.tf.ops.reduction.reduce import reduce_sum


@gradient("BiasAdd", inputs=False, slices=True)
def _bias_add(call: Call, upstream: Any) -> list[Any]:
    return [upstream, _of_bias(call, dense(upstream)) if call.wanted[1] else None]


def _of_bias(call: Call, upstream: Any) -> Any:
    (axis,) = call.args
    if upstream.shape.rank is None:
        # All axes around the channels become one.
        if axis == -1:
            return reduce_sum(reshape(upstream, [-1, length_of(call.inputs[1], 0)]), 0)
        rows = reshape(upstream, concat([shape(upstream)[:2], [-1]], 0))
        return reduce_sum(rows, [0, 2])
    rank = rank_of(upstream)
    channels = axis_of(axis, rank)
    return reduce_sum(upstream, [each for each in range(rank) if each != channels])


not_differentiable("InTopKV2")

__all__: list[str] = []
