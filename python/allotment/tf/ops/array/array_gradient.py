"""Gradients of operations that keep the elements as they are, or change their type."""

from typing import Any

from allotment.tf.ops.array.array import cast, saturation_limits
from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.autodiff.differentiation import Call, gradient, is_differentiable, not_differentiable
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.math.complex_numbers import real
from allotment.tf.ops.math.logical import logical_or


@gradient("Identity", "EnsureShape", inputs=False, slices=True)
def _same(call: Call, upstream: Any) -> Any:
    return upstream


@gradient("Cast", inputs=False, slices=True)
def _cast(call: Call, upstream: Any) -> Any:
    dtype = call.inputs[0]._dtype
    return cast(upstream, dtype) if is_differentiable(dtype) else None


@gradient("SaturateCast")
def _saturate_cast(call: Call, upstream: Any) -> Any:
    (x,), (wanted,) = call.inputs, call.args
    slope = cast(upstream, x._dtype)
    if wanted.is_complex and x._dtype.is_complex:
        return slope
    # An element that was moved to a limit does not depend on the input.
    place = real(x)
    low, high = saturation_limits(place._dtype.numpy, wanted)
    return where(logical_or(place < low, place > high), zeros_like(slope), slope)


not_differentiable(
    "StopGradient", "ZerosLike", "OnesLike", "Shape", "ShapeN", "Size", "Rank", "BroadcastArgs"
)


@gradient("IdentityN", inputs=False, slices=True)
def _identity_n(call: Call, *upstream: Any) -> list[Any]:
    return list(upstream)


__all__: list[str] = []
