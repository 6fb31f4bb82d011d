"""Gradient of a tensor that repeats one value."""

from typing import Any

from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.reduction.reduce import reduce_sum


@gradient("Fill", inputs=False)
def _fill(call: Call, upstream: Any) -> Any:
    return reduce_sum(upstream)


__all__: list[str] = []
