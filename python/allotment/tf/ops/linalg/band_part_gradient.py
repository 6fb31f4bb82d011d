"""Gradient of the part of matrices that is near the main diagonal."""

from typing import Any

from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.deferred import operand
from allotment.tf.ops.linalg.band_part import band_part


@gradient("MatrixBandPart", inputs=False)
def _band_part(call: Call, upstream: Any) -> Any:
    return band_part(upstream, *map(operand, call.args))


__all__: list[str] = []
