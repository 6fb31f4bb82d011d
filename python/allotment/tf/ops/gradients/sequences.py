"""Gradient of numbers in equal steps; all other sequences are constants."""

from typing import Any

from allotment.tf.ops.arguments import axis_of
from allotment.tf.ops.array import cast
from allotment.tf.ops.creation import reshape
from allotment.tf.ops.deferred import operand
from allotment.tf.ops.differentiation import Call, gradient, not_differentiable
from allotment.tf.ops.gradients.broadcasting import rank_of, shape_of, summed_to
from allotment.tf.ops.reduce import reduce_sum
from allotment.tf.ops.sequences import linspace


@gradient("LinSpace", inputs=False)
def _linspace(call: Call, upstream: Any) -> list[Any]:
    (first, last), (count, axis) = call.inputs, map(operand, call.args)
    rank = rank_of(upstream)
    place = axis_of(axis, rank)
    lengths = [count if each == place else 1 for each in range(rank)]
    way = cast(reshape(linspace(0.0, 1.0, count), lengths), upstream._dtype)
    return [
        summed_to(reduce_sum(upstream * share, place), shape_of(end))
        for share, end in ((1 - way, first), (way, last))
    ]


not_differentiable("Range", "OneHot", "SequenceMask")

__all__: list[str] = []
