"""Complex numbers and their parts."""

from typing import Any

import numpy as np

from allotment.tf.ops.array.creation import ones_like, zeros_like
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.inference.common import real_valued, unchanged
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.math.arithmetic import multiply
from allotment.tf.ops.math.comparison import less
from allotment.tf.ops.table import operation, same_shapes
from allotment.tf.tensors.dtype import complex64, complex128, float32, float64
from allotment.tf.tensors.tensor import EagerTensor


def _complex(real: Array, imag: Array) -> Array:
    made = np.empty(
        np.broadcast_shapes(real.shape, imag.shape), np.result_type(real.dtype, np.complex64), like=real
    )
    made.real, made.imag = real, imag
    return made


def _real(x: Array) -> Array:
    return x.real.copy()


def _imag(x: Array) -> Array:
    return x.imag.copy()


def _complex_shape(c: Inference) -> list[Output]:
    dtype = complex128 if c.dtype() is float64 else complex64
    return c.one(c.broadcast(c.shape(0), c.shape(1)), dtype)


_make = operation("Complex", _complex, shape=_complex_shape, fault=same_shapes)
_take_real = operation("Real", _real, shape=real_valued)
_take_imag = operation("Imag", _imag, shape=real_valued)
_conjugate = operation("Conj", np.conjugate, shape=unchanged)
_angle = operation("Angle", np.angle, shape=real_valued)


def complex(real: Any, imag: Any, name: str | None = None) -> EagerTensor:  # noqa: A001 - TensorFlow's name
    """Put complex numbers together from their parts, of float32 or float64. As ``tf.complex``.

    Raises:
        TypeError: The parts have different types, or one of no complex number.
    """
    real, imag = to_tensor(real), to_tensor(imag)
    if real._dtype is not imag._dtype or real._dtype not in (float32, float64):
        raise TypeError(
            f"The `real` and `imag` components have incorrect types: {real._dtype.name} {imag._dtype.name}. They "
            "must be consistent, and one of [tf.float32, tf.float64]"
        )
    return run(_make, (real, imag), name=name)  # type: ignore[no-any-return]


def real(input: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - TensorFlow's name
    """The real part; a tensor of real numbers is returned as it is. As ``tf.math.real``."""
    tensor = _numeric(input)
    return run(_take_real, (tensor,), name=name) if tensor._dtype.is_complex else tensor


def imag(input: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - TensorFlow's name
    """The imaginary part, zero (false, an empty text) of everything else. As ``tf.math.imag``."""
    tensor = to_tensor(input)
    if tensor._dtype.is_complex:
        return run(_take_imag, (tensor,), name=name)  # type: ignore[no-any-return]
    return zeros_like(tensor)


def conj(x: Any, name: str | None = None) -> EagerTensor:
    """The complex conjugate; a tensor of real numbers is returned as it is. As ``tf.math.conj``."""
    tensor = _numeric(x)
    return run(_conjugate, (tensor,), name=name) if tensor._dtype.is_complex else tensor


def angle(input: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - TensorFlow's name
    """The angle of a complex number: zero or pi of real ones. As ``tf.math.angle``."""
    tensor = _numeric(input)
    if tensor._dtype.is_complex:
        return run(_angle, (tensor,), name=name)  # type: ignore[no-any-return]
    return where(less(tensor, 0), multiply(ones_like(tensor), np.pi), zeros_like(tensor))


def _numeric(value: Any) -> EagerTensor:
    tensor = to_tensor(value)
    if not tensor._dtype.is_numeric:
        raise TypeError(f"input must be a numeric tensor, but got tensor with dtype {tensor._dtype!r}")
    return tensor


__all__ = ["angle", "complex", "conj", "imag", "real"]
