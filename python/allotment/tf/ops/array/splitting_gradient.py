"""Gradients of operations that take a tensor apart along an axis."""

from typing import Any

from allotment.tf.ops.array.joining import concat, stack
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.deferred import operand


@gradient("Unpack", inputs=False)
def _unpack(call: Call, *upstream: Any) -> Any:
    return stack(list(upstream), call.args[1])


@gradient("Split", "SplitV", inputs=False)
def _split(call: Call, *upstream: Any) -> Any:
    return concat(list(upstream), operand(call.args[1]))


__all__: list[str] = []
