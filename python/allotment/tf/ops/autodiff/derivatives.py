"""What the gradients of functions of one element have in common: the derivative times what comes from behind."""

from collections.abc import Callable
from typing import Any

import numpy as np

from allotment.tf.ops.arrays import Array, as_array, in_single
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import equal_shapes
from allotment.tf.ops.math.complex_numbers import conj
from allotment.tf.ops.table import operation


def by_input(name: str, derivative: Callable[[Any], Any]) -> None:
    """Enter the gradient of a function whose derivative is computed from the input.

    On the two sides of a cut it is that of TensorFlow, which conjugates the input and not the derivative.
    """

    @gradient(name)
    def back(call: Call, upstream: Any) -> Any:
        return upstream * derivative(conj(call.inputs[0]))


def by_output(name: str, derivative: Callable[[Any], Any]) -> None:
    """Enter the gradient of a function whose derivative is computed from the output, so that no input is kept."""

    @gradient(name, inputs=False, outputs=True)
    def back(call: Call, upstream: Any) -> Any:
        return upstream * derivative(conj(call.outputs[0]))


def with_zeros(name: str, kernel: Callable[[Array, Array], Any]) -> Callable[[Any, Any], Any]:
    """Enter the gradient of a function with singular points, by its output, as an operation of its own.

    Where the gradient of the output is zero, so is that of the input, also at a singular point: the gradient of
    ``where(x > 0, sqrt(x), 0)`` has no NaN at zero.

    Args:
        name: The function's row. The new row is called ``name + "Grad"``, as TensorFlow's.
        kernel: From the arrays of the output, conjugated, and of its gradient to the gradient of the input.

    Returns:
        The function of the new row.
    """

    def compute(y: Array, upstream: Array) -> Array:
        result = as_array(kernel(np.conjugate(y), upstream))
        np.copyto(result, 0, where=np.equal(upstream, 0))
        return result

    row = operation(f"{name}Grad", in_single(compute), shape=equal_shapes)

    def call(y: Any, upstream: Any) -> Any:
        return run(row, (y, upstream))

    @gradient(name, inputs=False, outputs=True)
    def back(made: Call, upstream: Any) -> Any:
        return call(made.outputs[0], upstream)

    return call


__all__ = ["by_input", "by_output", "with_zeros"]
