"""Gradients of special functions."""

import math
from typing import Any

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.autodiff.broadcasting import shape_of, summed_to
from allotment.tf.ops.autodiff.derivatives import by_input, by_output
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.arithmetic import square
from allotment.tf.ops.math.polygamma import polygamma, zeta
from allotment.tf.ops.math.real import exp
from allotment.tf.ops.math.special import digamma
from allotment.tf.tensors.dtype import float16, float32

_SLOPE = 2 / math.sqrt(math.pi)

by_input("Erf", lambda x: _SLOPE * exp(-square(x)))
by_input("Erfc", lambda x: -_SLOPE * exp(-square(x)))
by_output("Erfinv", lambda y: exp(square(y)) / _SLOPE)
by_output("Ndtri", lambda y: math.sqrt(2 * math.pi) * exp(0.5 * square(y)))
by_input("Lgamma", digamma)


def _trigamma(x: Any) -> Any:
    wide = cast(x, float32) if x._dtype is float16 else x
    return cast(polygamma(to_tensor(1, wide._dtype), wide), x._dtype)


by_input("Digamma", _trigamma)


@gradient("Polygamma")
def _polygamma(call: Call, upstream: Any) -> list[Any]:
    a, x = call.inputs
    return [None, summed_to(upstream * polygamma(a + 1, x), shape_of(x))]


@gradient("Zeta")
def _zeta(call: Call, upstream: Any) -> list[Any]:
    # By its first argument TensorFlow has no derivative either.
    x, q = call.inputs
    return [None, summed_to(upstream * -x * zeta(x + 1, q), shape_of(q))]


__all__: list[str] = []
