"""Gradient of numbers in equal steps; all other sequences are constants."""

from typing import Any

from allotment.tf.ops.arguments.integers import axis_of
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.layout import reshape
from allotment.tf.ops.autodiff.broadcasting import rank_of, shape_of, summed_to
from allotment.tf.ops.autodiff.differentiation import Call, gradient, not_differentiable
from allotment.tf.ops.deferred import operand
from allotment.tf.ops.math.sequences import linspace
from allotment.tf.ops.reduction.reduce import reduce_sum


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
