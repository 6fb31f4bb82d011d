"""Gradients of complex numbers' parts. That of a complex number is the conjugate of a derivative, as TensorFlow's."""

from typing import Any

from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.autodiff.broadcasting import shape_of, summed_to
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.math.complex_numbers import complex as complex_of
from allotment.tf.ops.math.complex_numbers import conj, imag, real


@gradient("Complex", inputs=False)
def _complex(call: Call, upstream: Any) -> list[Any]:
    parts = real(upstream), imag(upstream)
    return [summed_to(part, shape_of(each)) for part, each in zip(parts, call.inputs, strict=True)]


@gradient("Real", inputs=False)
def _real(call: Call, upstream: Any) -> Any:
    return complex_of(upstream, zeros_like(upstream))


@gradient("Imag", inputs=False)
def _imag(call: Call, upstream: Any) -> Any:
    return complex_of(zeros_like(upstream), upstream)


@gradient("Conj", inputs=False)
def _conj(call: Call, upstream: Any) -> Any:
    return conj(upstream)


@gradient("Angle")
def _angle(call: Call, upstream: Any) -> Any:
    turned = complex_of(imag(call.inputs[0]), real(call.inputs[0]))
    return -complex_of(upstream, zeros_like(upstream)) / turned


__all__: list[str] = []
