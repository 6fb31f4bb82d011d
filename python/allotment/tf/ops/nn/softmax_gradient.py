"""Gradients of softmax and its logarithm."""

from typing import Any

from allotment.tf.ops.autodiff.differentiation import Call, gradient, not_differentiable
from allotment.tf.ops.math.real import exp
from allotment.tf.ops.reduction.reduce import reduce_sum


@gradient("Softmax", inputs=False, outputs=True)
def _softmax(call: Call, upstream: Any) -> Any:
    y = call.outputs[0]
    return (upstream - reduce_sum(upstream * y, -1, keepdims=True)) * y


@gradient("LogSoftmax", inputs=False, outputs=True)
def _log_softmax(call: Call, upstream: Any) -> Any:
    return upstream - exp(call.outputs[0]) * reduce_sum(upstream, -1, keepdims=True)


not_differentiable("OneHotLike")

__all__: list[str] = []
