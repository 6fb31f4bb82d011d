"""Gradients of operations on diagonals of matrices."""

from typing import Any

from allotment.tf.ops.array.creation import zeros
from allotment.tf.ops.autodiff.broadcasting import length_of, shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.linalg.bands import Band
from allotment.tf.ops.linalg.diagonals import diag, diag_part, set_diag


def _options(band: Band) -> dict[str, Any]:
    return {"k": (band.lowest, band.highest), "align": band.align}


@gradient("MatrixDiagV3", inputs=False)
def _diag(call: Call, upstream: Any) -> Any:
    return diag_part(upstream, **_options(call.args[0]))


@gradient("MatrixDiagPartV3", inputs=False)
def _diag_part(call: Call, upstream: Any) -> Any:
    rows, columns = (length_of(call.inputs[0], axis) for axis in (-2, -1))
    return diag(upstream, num_rows=rows, num_cols=columns, **_options(call.args[0]))


@gradient("MatrixSetDiagV3", inputs=False)
def _set_diag(call: Call, upstream: Any) -> list[Any]:
    options, packed = _options(call.args[0]), call.inputs[1]
    nothing = zeros(shape_of(packed), packed._dtype)
    return [set_diag(upstream, nothing, **options), diag_part(upstream, **options)]


__all__: list[str] = []
