"""Gradient of the check that all elements are finite."""

from typing import Any

from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.control.numerics import check_numerics


@gradient("CheckNumerics", inputs=False)
def _check_numerics(call: Call, upstream: Any) -> Any:
    return check_numerics(
        upstream, "Not a number (NaN) or infinity (Inf) values detected in gradient. " + call.args[0]
    )


__all__: list[str] = []
