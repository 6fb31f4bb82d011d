"""Gradients of operations that change the order of elements along axes."""

from typing import Any

from allotment.tf.ops.array.reordering import reverse, reverse_sequence, roll
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.deferred import Deferred, listed


@gradient("ReverseV2", inputs=False)
def _reverse(call: Call, upstream: Any) -> Any:
    return reverse(upstream, listed(call.args[0]))


@gradient("Roll", inputs=False)
def _roll(call: Call, upstream: Any) -> Any:
    shifts, axes = call.args
    back = -shifts.tensor if type(shifts) is Deferred else [-shift for shift in shifts]
    return roll(upstream, back, listed(axes))


@gradient("ReverseSequence", inputs=(1,))
def _reverse_sequence(call: Call, upstream: Any) -> Any:
    seq, batch = call.args
    return reverse_sequence(upstream, call.inputs[1], seq, batch)


__all__: list[str] = []
