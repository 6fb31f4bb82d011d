"""What the gradients of functions of one element have in common: the derivative times what comes from behind."""

from collections.abc import Callable
from typing import Any

from allotment.ops.complex_numbers import conj
from allotment.ops.differentiation import Call, gradient


def by_input(name: str, derivative: Callable[[Any], Any]) -> None:
    """Enter the gradient of a function whose derivative is computed from the input."""

    @gradient(name)
    def back(call: Call, upstream: Any) -> Any:
        return upstream * conj(derivative(call.inputs[0]))


def by_output(name: str, derivative: Callable[[Any], Any]) -> None:
    """Enter the gradient of a function whose derivative is computed from the output, so that no input is kept."""

    @gradient(name, inputs=False, outputs=True)
    def back(call: Call, upstream: Any) -> Any:
        return upstream * conj(derivative(call.outputs[0]))


__all__ = ["by_input", "by_output"]
