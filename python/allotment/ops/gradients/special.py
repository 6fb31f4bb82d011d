"""Gradients of special functions."""

import math

from allotment.ops.gradients.elementwise import by_input, by_output
from allotment.ops.inverse_special import digamma
from allotment.ops.math import square
from allotment.ops.real import exp

_SLOPE = 2 / math.sqrt(math.pi)

by_input("Erf", lambda x: _SLOPE * exp(-square(x)))
by_input("Erfc", lambda x: -_SLOPE * exp(-square(x)))
by_output("Erfinv", lambda y: exp(square(y)) / _SLOPE)
by_output("Erfcinv", lambda y: -exp(square(y)) / _SLOPE)
by_output("Ndtri", lambda y: math.sqrt(2 * math.pi) * exp(0.5 * square(y)))
by_input("Lgamma", digamma)

__all__: list[str] = []
