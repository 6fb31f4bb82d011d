"""Gradient of the exponential of matrices."""

from typing import Any

from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import adjoint
from allotment.tf.ops.autodiff.broadcasting import length_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.linalg.exponential import expm


@gradient("MatrixExponential")
def _exponential(call: Call, upstream: Any) -> Any:
    # The exponential of [[a, e], [0, a]] has the derivative at a in the direction e in its upper right corner.
    turned = adjoint(call.inputs[0])
    above = concat([turned, upstream], -1)
    below = concat([zeros_like(turned), turned], -1)
    length = length_of(turned, -1)
    return expm(concat([above, below], -2))[..., :length, length:]


__all__: list[str] = []
