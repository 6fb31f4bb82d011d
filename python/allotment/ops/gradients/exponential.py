"""Gradient of the exponential of matrices."""

from typing import Any

from allotment.ops.array import zeros_like
from allotment.ops.differentiation import Call, gradient
from allotment.ops.exponential import expm
from allotment.ops.gradients.broadcasting import length_of
from allotment.ops.joining import concat
from allotment.ops.products import adjoint


@gradient("MatrixExponential")
def _exponential(call: Call, upstream: Any) -> Any:
    # The exponential of [[a, e], [0, a]] has the derivative at a in the direction e in its upper right corner.
    turned = adjoint(call.inputs[0])
    above = concat([turned, upstream], -1)
    below = concat([zeros_like(turned), turned], -1)
    length = length_of(turned, -1)
    return expm(concat([above, below], -2))[..., :length, length:]


__all__: list[str] = []
