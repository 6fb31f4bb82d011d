"""Gradients of activation functions."""

from typing import Any

import numpy as np

from allotment.ops.activations import SELU_ALPHA, SELU_SCALE
from allotment.ops.array import zeros_like
from allotment.ops.arrays import Array
from allotment.ops.differentiation import Call, gradient
from allotment.ops.element_types import FLOATS
from allotment.ops.execute import run
from allotment.ops.gathering import where
from allotment.ops.gradients.elementwise import by_input
from allotment.ops.math import abs as absolute
from allotment.ops.math import reciprocal, square
from allotment.ops.real import sigmoid
from allotment.ops.table import Operation, operation


def _relu_grad_of(upstream: Array, y: Array) -> Array:
    result = np.zeros_like(upstream)
    np.copyto(result, upstream, where=np.greater(y, 0))
    return result


def _relu6_grad_of(upstream: Array, y: Array) -> Array:
    inside = np.asarray(np.greater(y, 0))
    np.logical_and(inside, np.less(y, 6), out=inside)
    result = np.zeros_like(upstream)
    np.copyto(result, upstream, where=inside)
    return result


def _leaky_relu_grad_of(upstream: Array, x: Array, alpha: float) -> Array:
    result = np.asarray(np.multiply(upstream, alpha))
    np.copyto(result, upstream, where=np.greater(x, 0))
    return result


# Rows of their own, and not a choice by ``where``: what they look at has zeros for a gradient, and not none.
_relu_grad = operation("ReluGrad", _relu_grad_of, takes=FLOATS.__contains__)
_relu6_grad = operation("Relu6Grad", _relu6_grad_of, takes=FLOATS.__contains__)
_leaky_relu_grad = operation("LeakyReluGrad", _leaky_relu_grad_of, takes=FLOATS.__contains__)


@gradient("Relu", inputs=False, outputs=True)
def _relu(call: Call, upstream: Any) -> Any:
    return run(_relu_grad, (upstream, call.outputs[0]))


@gradient("Relu6", inputs=False, outputs=True)
def _relu6(call: Call, upstream: Any) -> Any:
    return run(_relu6_grad, (upstream, call.outputs[0]))


@gradient("LeakyRelu")
def _leaky_relu(call: Call, upstream: Any) -> Any:
    return run(_leaky_relu_grad, (upstream, call.inputs[0]), *call.args)


def _again(name: str, row: Operation) -> None:
    """The gradient of a row, which is in line with what comes from above, is the row once more."""

    @gradient(name, inputs=(1,))
    def back(call: Call, upstream: Any) -> list[Any]:
        seen = call.inputs[1]
        return [
            run(row, (upstream, seen), *call.args) if call.wanted[0] else None,
            zeros_like(seen) if call.wanted[1] else None,
        ]


_again("ReluGrad", _relu_grad)
_again("Relu6Grad", _relu6_grad)
_again("LeakyReluGrad", _leaky_relu_grad)


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
