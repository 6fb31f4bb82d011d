"""Gradients of activation functions."""

from typing import Any

from allotment.ops.activations import SELU_ALPHA, SELU_SCALE
from allotment.ops.differentiation import Call, gradient
from allotment.ops.gathering import where
from allotment.ops.gradients.elementwise import by_input
from allotment.ops.logical import logical_and
from allotment.ops.math import abs as absolute
from allotment.ops.math import reciprocal, square
from allotment.ops.real import sigmoid


@gradient("Relu", inputs=False, outputs=True)
def _relu(call: Call, upstream: Any) -> Any:
    return where(call.outputs[0] > 0, upstream, 0)


@gradient("Relu6", inputs=False, outputs=True)
def _relu6(call: Call, upstream: Any) -> Any:
    y = call.outputs[0]
    return where(logical_and(y > 0, y < 6), upstream, 0)


@gradient("LeakyRelu")
def _leaky_relu(call: Call, upstream: Any) -> Any:
    return where(call.inputs[0] > 0, upstream, upstream * call.args[0])


@gradient("Elu", inputs=False, outputs=True)
def _elu(call: Call, upstream: Any) -> Any:
    y = call.outputs[0]
    return where(y < 0, upstream * (y + 1), upstream)


@gradient("Selu", inputs=False, outputs=True)
def _selu(call: Call, upstream: Any) -> Any:
    y = call.outputs[0]
    return where(y < 0, upstream * (y + SELU_SCALE * SELU_ALPHA), upstream * SELU_SCALE)


by_input("Softplus", sigmoid)
by_input("Softsign", lambda x: reciprocal(square(1 + absolute(x))))

__all__: list[str] = []
