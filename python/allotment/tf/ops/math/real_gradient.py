"""Gradients of element-wise functions of real and complex numbers."""

from typing import Any

from allotment.tf.ops.autodiff.broadcasting import of_pair
from allotment.tf.ops.autodiff.derivatives import by_input, by_output, with_zeros
from allotment.tf.ops.autodiff.differentiation import Call, gradient, not_differentiable
from allotment.tf.ops.math.arithmetic import reciprocal, square
from allotment.tf.ops.math.complex_numbers import conj
from allotment.tf.ops.math.real import cos, cosh, exp, sin, sinh, sqrt

_sqrt_grad = with_zeros("Sqrt", lambda y, upstream: 0.5 * upstream / y)
_rsqrt_grad = with_zeros("Rsqrt", lambda y, upstream: -0.5 * upstream * y * (y * y))


@gradient("SqrtGrad", inputs=(0,), outputs=True)
def _of_sqrt_grad(call: Call, upstream: Any) -> list[Any]:
    shared = upstream / call.inputs[0]
    return [-conj(shared) * call.outputs[0], 0.5 * shared]


@gradient("RsqrtGrad")
def _of_rsqrt_grad(call: Call, upstream: Any) -> list[Any]:
    y, given = conj(call.inputs[0]), call.inputs[1]
    return [-1.5 * conj(upstream) * given * square(y), _rsqrt_grad(y, upstream)]


by_output("Exp", lambda y: y)
by_input("Expm1", exp)
by_input("Log", reciprocal)
by_input("Log1p", lambda x: reciprocal(x + 1))
by_output("Sigmoid", lambda y: y * (1 - y))
by_input("Sin", cos)
by_input("Cos", lambda x: -sin(x))
by_input("Tan", lambda x: square(reciprocal(cos(x))))
by_input("Asin", lambda x: reciprocal(sqrt(1 - square(x))))
by_input("Acos", lambda x: -reciprocal(sqrt(1 - square(x))))
by_input("Atan", lambda x: reciprocal(1 + square(x)))
by_input("Sinh", cosh)
by_input("Cosh", sinh)
by_output("Tanh", lambda y: 1 - square(y))


@gradient("Asinh", inputs=False, outputs=True)
def _asinh(call: Call, upstream: Any) -> Any:
    return upstream / cosh(conj(call.outputs[0]))


@gradient("Acosh", inputs=False, outputs=True)
def _acosh(call: Call, upstream: Any) -> Any:
    return upstream / sinh(conj(call.outputs[0]))


by_input("Atanh", lambda x: reciprocal(1 - square(x)))
of_pair(
    "Atan2",
    lambda upstream, y, x: x * (upstream / (square(y) + square(x))),
    lambda upstream, y, x: -y * (upstream / (square(y) + square(x))),
)

not_differentiable("Floor", "Ceil", "Rint", "Round")

__all__: list[str] = []
