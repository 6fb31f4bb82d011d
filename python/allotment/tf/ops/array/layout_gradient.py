"""Gradients of operations that move the axes of a tensor, or its elements along them."""

from typing import Any

from allotment.tf.ops.arguments.integers import axis_of
from allotment.tf.ops.array.layout import reverse, reverse_sequence, roll, transpose
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.deferred import is_known, listed, operand
from allotment.tf.ops.indexing.partition import invert_permutation


def _back(call: Call) -> Any:
    """The order that undoes the call's."""
    (order,) = call.args
    if order is None:
        return None
    if not is_known(order):
        return invert_permutation(listed(order))
    places = [axis_of(axis, len(order)) for axis in order]
    return sorted(range(len(places)), key=places.__getitem__)


@gradient("Transpose", inputs=False)
def _transpose(call: Call, upstream: Any) -> Any:
    return transpose(upstream, _back(call))


@gradient("ConjugateTranspose", inputs=False)
def _conjugate_transpose(call: Call, upstream: Any) -> Any:
    return transpose(upstream, _back(call), conjugate=True)


@gradient("ReverseV2", inputs=False)
def _reverse(call: Call, upstream: Any) -> Any:
    return reverse(upstream, listed(call.args[0]))


@gradient("Roll", inputs=False)
def _roll(call: Call, upstream: Any) -> Any:
    shifts, axes = call.args
    back = -operand(shifts) if not is_known(shifts) else [-shift for shift in shifts]
    return roll(upstream, back, listed(axes))


@gradient("ReverseSequence", inputs=(1,))
def _reverse_sequence(call: Call, upstream: Any) -> Any:
    seq, batch = call.args
    return reverse_sequence(upstream, call.inputs[1], seq, batch)


__all__: list[str] = []
