"""Element-wise functions of real and complex numbers: powers, logarithms, angles, rounding."""

from typing import Any

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.arrays import Array, as_array, in_single
from allotment.tf.ops.blocks import in_blocks
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.inference.common import broadcasting, unchanged
from allotment.tf.ops.public import binary, public_unary, unary
from allotment.tf.ops.table import operation, same_shapes
from allotment.tf.ops.types.element_types import INTEGERS
from allotment.tf.tensors.tensor import EagerTensor


def _reciprocal_root(x: Array) -> Any:
    root = as_array(np.sqrt(x))
    return np.reciprocal(root, out=root)


def log1p_into(out: Array, x: Array) -> None:
    """Fill an array, which may be ``x``, with ``log(1 + x)``, exact near zero.

    NumPy's own is one call of the C library for each element, unless the processor has AVX-512.
    """
    total = as_array(np.add(x, 1))
    # The rounding error of the sum, as a part of it; it has no part in an infinite logarithm.
    lost = as_array(np.subtract(total, 1))
    np.subtract(x, lost, out=lost)
    np.true_divide(lost, total, out=lost)
    np.log(total, out=total)
    np.copyto(lost, 0, where=np.logical_not(np.isfinite(lost)))
    np.add(total, lost, out=total)
    # That of a negative zero is one, too.
    np.copysign(total, x, out=out)


@in_single
@in_blocks
def _log1p_of(out: Array, x: Array) -> None:
    log1p_into(out, x)


@in_blocks
def _expm1_single(out: Array, x: Array) -> None:
    wide = np.exp(x, dtype=np.float64)
    np.subtract(wide, 1, out=out, casting="same_kind")
    # Here the difference has fewer digits than single precision, and the element is as near.
    np.copyto(out, x, where=np.less(np.abs(x), 1e-8))


def _expm1_of(x: Array) -> Any:
    """Compute ``exp(x) - 1`` in double precision, which takes a third of the C library's time in single precision."""
    return _expm1_single(x) if x.dtype == np.float32 else np.expm1(x)


def log1p_of(x: Array) -> Any:
    """Compute ``log(1 + x)``, exact near zero."""
    return _complex_log1p_of(x) if x.dtype.kind == "c" else _log1p_of(x)


def _complex_log1p_of(x: Array) -> Array:
    result, near = as_array(np.log(1 + x)), np.less(np.abs(x), 0.5)
    real, imag = x.real[near], x.imag[near]
    # The square of the size less one, whose digits the sum loses; NumPy's own loses them, too.
    result.real[near] = np.log1p(real * (2 + real) + imag * imag) / 2
    return result


def _logistic(x: Array) -> Any:
    result = as_array(np.negative(x))
    np.exp(result, out=result)
    np.add(result, 1, out=result)
    # A reciprocal of complex numbers would change the sign of an imaginary part of zero.
    return np.divide(1, result, out=result)


sqrt = public_unary("sqrt", "Sqrt", np.sqrt, "The square root. As ``tf.sqrt``.")
rsqrt = public_unary(
    "rsqrt",
    "Rsqrt",
    in_single(_reciprocal_root),
    "One divided by the square root. As ``tf.math.rsqrt``.",
)
exp = public_unary("exp", "Exp", np.exp, "e to the power of the element. As ``tf.exp``.")
expm1 = public_unary(
    "expm1",
    "Expm1",
    in_single(_expm1_of),
    "``exp(x) - 1``, exact near zero. As ``tf.math.expm1``.",
)
log = public_unary("log", "Log", np.log, "The natural logarithm. As ``tf.math.log``.")
log1p = public_unary("log1p", "Log1p", log1p_of, "``log(1 + x)``, exact near zero. As ``tf.math.log1p``.")
_sigmoid = unary(operation("Sigmoid", in_single(_logistic), shape=unchanged))


def sigmoid(x: Any, name: str | None = None) -> EagerTensor:
    """``1 / (1 + exp(-x))``. As ``tf.sigmoid``."""
    if not thread.state.in_function:
        return _sigmoid(x, name)
    features = to_tensor(x)
    made = _sigmoid(features, name)
    if type(made) is EagerTensor:
        made._activation = "Sigmoid", features
    return made


sin = public_unary("sin", "Sin", np.sin, "The sine. As ``tf.sin``.")
cos = public_unary("cos", "Cos", np.cos, "The cosine. As ``tf.cos``.")
tan = public_unary("tan", "Tan", np.tan, "The tangent. As ``tf.tan``.")
asin = public_unary("asin", "Asin", np.arcsin, "The angle of a sine. As ``tf.asin``.")
acos = public_unary("acos", "Acos", np.arccos, "The angle of a cosine. As ``tf.acos``.")
atan = public_unary("atan", "Atan", np.arctan, "The angle of a tangent. As ``tf.atan``.")
sinh = public_unary("sinh", "Sinh", np.sinh, "The hyperbolic sine. As ``tf.sinh``.")
cosh = public_unary("cosh", "Cosh", np.cosh, "The hyperbolic cosine. As ``tf.cosh``.")
tanh = public_unary("tanh", "Tanh", np.tanh, "The hyperbolic tangent. As ``tf.tanh``.")
asinh = public_unary("asinh", "Asinh", np.arcsinh, "The inverse of the hyperbolic sine. As ``tf.asinh``.")
acosh = public_unary("acosh", "Acosh", np.arccosh, "The inverse of the hyperbolic cosine. As ``tf.acosh``.")
atanh = public_unary("atanh", "Atanh", np.arctanh, "The inverse of the hyperbolic tangent. As ``tf.atanh``.")

floor = public_unary(
    "floor", "Floor", np.floor, "The largest whole number that is not above. As ``tf.floor``."
)
ceil = public_unary(
    "ceil", "Ceil", np.ceil, "The smallest whole number that is not below. As ``tf.math.ceil``."
)
rint = public_unary(
    "rint", "Rint", np.rint, "The nearest whole number, the even one of two. As ``tf.math.rint``."
)
_atan2 = binary(operation("Atan2", np.arctan2, shape=broadcasting, fault=same_shapes))
_round = unary(operation("Round", np.rint, shape=unchanged))


def atan2(y: Any, x: Any, name: str | None = None) -> EagerTensor:
    """The angle of the point with these coordinates; ``y`` comes first. As ``tf.atan2``."""
    return _atan2(y, x, name)


def round(x: Any, name: str | None = None) -> EagerTensor:  # noqa: A001 - the name TensorFlow has
    """The nearest whole number, the even one of two; integers are returned as they are. As ``tf.round``."""
    x = to_tensor(x)
    return x if x._dtype in INTEGERS else _round(x, name)


__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "log",
    "log1p",
    "rint",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
