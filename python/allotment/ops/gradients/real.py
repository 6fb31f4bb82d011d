"""Gradients of element-wise functions of real and complex numbers."""

from allotment.ops.differentiation import not_differentiable
from allotment.ops.gradients.broadcasting import of_pair
from allotment.ops.gradients.elementwise import by_input, by_output
from allotment.ops.math import reciprocal, square
from allotment.ops.real import cos, cosh, rsqrt, sin, sinh

by_output("Sqrt", lambda y: 0.5 / y)
by_output("Rsqrt", lambda y: -0.5 * y * square(y))
by_output("Exp", lambda y: y)
by_output("Expm1", lambda y: y + 1)
by_input("Log", reciprocal)
by_input("Log1p", lambda x: reciprocal(x + 1))
by_output("Sigmoid", lambda y: y * (1 - y))
by_input("Sin", cos)
by_input("Cos", lambda x: -sin(x))
by_output("Tan", lambda y: 1 + square(y))
by_input("Asin", lambda x: rsqrt(1 - square(x)))
by_input("Acos", lambda x: -rsqrt(1 - square(x)))
by_input("Atan", lambda x: reciprocal(1 + square(x)))
by_input("Sinh", cosh)
by_input("Cosh", sinh)
by_output("Tanh", lambda y: 1 - square(y))
by_output("Asinh", lambda y: reciprocal(cosh(y)))
by_output("Acosh", lambda y: reciprocal(sinh(y)))
by_input("Atanh", lambda x: reciprocal(1 - square(x)))
of_pair(
    "Atan2",
    lambda upstream, y, x: upstream * (x / (square(x) + square(y))),
    lambda upstream, y, x: upstream * (-y / (square(x) + square(y))),
)

not_differentiable("Floor", "Ceil", "Rint", "Round")

__all__: list[str] = []
