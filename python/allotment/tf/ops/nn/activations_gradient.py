"""Gradients of activation functions."""

from typing import Any

import numpy as np

from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.arrays import Array, as_array
from allotment.tf.ops.autodiff.derivatives import by_input
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.blocks import choose_into, pair_in_blocks
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.inference.common import equal_shapes
from allotment.tf.ops.math.arithmetic import abs as absolute
from allotment.tf.ops.math.arithmetic import reciprocal, square
from allotment.tf.ops.math.real import sigmoid
from allotment.tf.ops.nn.activations import SELU_ALPHA, SELU_SCALE
from allotment.tf.ops.table import Operation, operation


@pair_in_blocks
def _relu_grad_of(out: Array, upstream: Array, y: Array) -> None:
    # A product, as in TensorFlow: what is infinite above a zero becomes a NaN.
    np.multiply(upstream, np.greater(y, 0), out=out)


@pair_in_blocks
def _relu6_grad_of(out: Array, upstream: Array, y: Array) -> None:
    inside = as_array(np.greater(y, 0))
    np.logical_and(inside, np.less(y, 6), out=inside)
    np.multiply(upstream, inside, out=out)


@pair_in_blocks
def _leaky_relu_grad_of(out: Array, upstream: Array, x: Array, alpha: float) -> None:
    np.multiply(upstream, x.dtype.type(np.float32(alpha)), out=out)
    choose_into(out, np.logical_not(np.greater(x, 0)), out, upstream)


@pair_in_blocks
def _elu_grad_of(out: Array, upstream: Array, y: Array) -> None:
    np.add(y, 1, out=out)
    np.multiply(out, upstream, out=out)
    choose_into(out, np.less(y, 0), out, upstream)


@pair_in_blocks
def _selu_grad_of(out: Array, upstream: Array, y: Array) -> None:
    np.add(y, SELU_SCALE * SELU_ALPHA, out=out)
    np.multiply(out, upstream, out=out)
    choose_into(out, np.less(y, 0), out, np.multiply(upstream, SELU_SCALE))


# Rows of their own, and not a choice by ``where``: what they look at has zeros for a gradient, and not none.
_relu_grad = operation("ReluGrad", _relu_grad_of, shape=equal_shapes)
_relu6_grad = operation("Relu6Grad", _relu6_grad_of, shape=equal_shapes)
_leaky_relu_grad = operation("LeakyReluGrad", _leaky_relu_grad_of, shape=equal_shapes)
_elu_grad = operation("EluGrad", _elu_grad_of, shape=equal_shapes)
_selu_grad = operation("SeluGrad", _selu_grad_of, shape=equal_shapes)


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


def _by_output(name: str, row: Operation) -> None:
    """Enter the gradients of an operation whose slope is a function of its output, and of that gradient."""

    @gradient(name, inputs=False, outputs=True)
    def back(call: Call, upstream: Any) -> Any:
        return run(row, (upstream, call.outputs[0]))

    @gradient(row.name)
    def back_again(call: Call, upstream: Any) -> list[Any]:
        first, y = call.inputs
        return [
            run(row, (upstream, y)) if call.wanted[0] else None,
            where(y < 0, upstream * first, zeros_like(y)) if call.wanted[1] else None,
        ]


_by_output("Elu", _elu_grad)
_by_output("Selu", _selu_grad)


by_input("Softplus", sigmoid)
by_input("Softsign", lambda x: reciprocal(square(1 + absolute(x))))

__all__: list[str] = []
