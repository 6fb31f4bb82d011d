"""Gradients of the operations of networks' layers."""

from typing import Any

from allotment.ops.arguments import axis_of
from allotment.ops.differentiation import Call, gradient, not_differentiable
from allotment.ops.gradients.broadcasting import lengths_of
from allotment.ops.reduce import reduce_sum


@gradient("BiasAdd", inputs=False)
def _bias_add(call: Call, upstream: Any) -> list[Any]:
    rank = len(lengths_of(call.inputs[0]))
    channels = axis_of(call.args[0], rank)
    return [upstream, reduce_sum(upstream, [axis for axis in range(rank) if axis != channels])]


not_differentiable("InTopKV2")

__all__: list[str] = []
