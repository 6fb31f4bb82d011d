"""Gradient of the product of vectors in space."""

from typing import Any

from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.linalg.tensor_products import cross


@gradient("Cross", inputs="beside others")
def _cross(call: Call, upstream: Any) -> list[Any]:
    a, b = call.inputs
    return [
        cross(b, upstream) if call.wanted[0] else None,
        cross(upstream, a) if call.wanted[1] else None,
    ]


__all__: list[str] = []
