"""Division: of reals, towards minus infinity, towards zero, and with remainders."""

from typing import Any

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.arrays import Array, as_array, in_single, is_host
from allotment.tf.ops.convert import to_pair_by_first, to_tensor
from allotment.tf.ops.inference.common import broadcasting
from allotment.tf.ops.public import binary, public, public_binary
from allotment.tf.ops.table import operation, same_shapes
from allotment.tf.ops.types.element_types import INEXACT, INTEGERS, NUMBERS
from allotment.tf.tensors.dtype import float32, float64
from allotment.tf.tensors.tensor import EagerTensor, Tensor

realdiv = public(
    binary(operation("RealDiv", np.true_divide, shape=broadcasting, fault=same_shapes)),
    "realdiv",
    "Divide floats or complex numbers. As ``tf.realdiv``.",
)


def truediv(x: Any, y: Any, name: str | None = None) -> EagerTensor:
    """Divide as Python's ``/`` does: integers become floats first. As ``tf.math.truediv``.

    Integers of 8 and 16 bits give float32, others float64.

    Raises:
        TypeError: The operands have different types.
    """
    x, y = _operands(x, y, "__truediv__")
    return realdiv(x, y, name if thread.state.graph is None else name or "truediv")


def _operands(x: Any, y: Any, name: str) -> tuple[EagerTensor, EagerTensor]:
    """Two operands of one type that has fractions, of a function of this name."""
    if type(x) is not EagerTensor or type(y) is not EagerTensor:
        x, y = to_pair_by_first(x, y)
    dtype = x._dtype
    if dtype is not y._dtype:
        raise TypeError(f"`x` and `y` must have the same dtype, got {dtype!r} != {y._dtype!r}.")
    if dtype in INTEGERS:
        wanted = float32 if dtype.size <= 2 else float64
        x, y = cast(x, wanted), cast(y, wanted)
    elif dtype not in INEXACT:
        allowed = ", ".join(map(repr, NUMBERS))
        raise TypeError(f"Invalid dtype {dtype!r} in {name}. Expected one of {{{allowed}}}.")
    return x, y


def divide(x: Any, y: Any, name: str | None = None) -> EagerTensor:
    """Divide as Python's ``/`` does. As ``tf.divide``; see ``truediv``.

    A number or an array takes the type of the tensor beside it, on either side.
    """
    if not isinstance(x, Tensor) and (isinstance(y, Tensor) or hasattr(y, "_as_tensor")):
        y = to_tensor(y)
        x = to_tensor(x, like=y._dtype)
    return truediv(x, y, name)


def _division_fault(x: Array, y: Array) -> str | None:
    if _has_zero_divisor(x, y):
        return "Integer division by zero"
    return same_shapes(x, y)


def _has_zero_divisor(x: Array, y: Array) -> bool:
    return y.dtype.kind in "iu" and x.size > 0 and not y.all()


def _guarded(x: Array, y: Array) -> None:
    """Raise what the quick way of an operation takes for a sign to look for the words of a fault."""
    if _has_zero_divisor(x, y):
        raise ValueError("division by zero")


def _floor_divide(x: Array, y: Array) -> Any:
    if x.dtype.kind in "iu":
        _guarded(x, y)
        return np.floor_divide(x, y)
    quotient = as_array(np.true_divide(x, y))
    if quotient.dtype.kind == "c":
        # NumPy has no floor of complex numbers; the parts are views into the quotient.
        np.floor(quotient.real, out=quotient.real)
        np.floor(quotient.imag, out=quotient.imag)
        return quotient
    # Not NumPy's own, which corrects the rounding of the quotient: 1. // 0.1 is 10, as TensorFlow's.
    return np.floor(quotient, out=quotient)


floordiv = public(
    binary(
        operation("FloorDiv", in_single(_floor_divide), shape=broadcasting, fault=_division_fault),
        called="floordiv",
    ),
    "floordiv",
    "Divide and round towards minus infinity. As ``tf.math.floordiv``; integers cannot be divided by zero.",
)


def _floor_mod(x: Array, y: Array) -> Array:
    _guarded(x, y)
    # Not NumPy's remainder, whose zeros have the sign of the divisor.
    rest = as_array(np.fmod(x, y))
    if y.dtype.kind != "u":
        apart = (rest != 0) & ((rest < 0) != (y < 0))
        if is_host(rest):
            np.add(rest, y, out=rest, where=apart)
        else:
            # CuPy's ufuncs have no ``where``.
            np.copyto(rest, np.add(rest, y), where=apart)
    return rest


floormod = public_binary(
    "floormod",
    "FloorMod",
    _floor_mod,
    "The rest of ``floordiv``: it has the sign of ``y``. As ``tf.math.floormod``.",
    fault=_division_fault,
)
mod = floormod


def _truncate_divide(x: Array, y: Array) -> Any:
    if x.dtype.kind == "f":
        quotient = as_array(np.true_divide(x, y))
        return np.trunc(quotient, out=quotient)
    _guarded(x, y)
    # Without its rest, `x` is a multiple of `y`, and no rounding is left to go the wrong way.
    multiple = as_array(np.fmod(x, y))
    np.subtract(x, multiple, out=multiple)
    return np.floor_divide(multiple, y, out=multiple)


truncatediv = public_binary(
    "truncatediv",
    "TruncateDiv",
    in_single(_truncate_divide),
    "Divide and round towards zero, as C does. As ``tf.truncatediv``.",
    fault=_division_fault,
)


def _truncate_mod(x: Array, y: Array) -> Array:
    _guarded(x, y)
    return np.fmod(x, y)


truncatemod = public_binary(
    "truncatemod",
    "TruncateMod",
    _truncate_mod,
    "The rest of ``truncatediv``: it has the sign of ``x``. As ``tf.truncatemod``.",
    fault=_division_fault,
)


def _divide_no_nan(x: Array, y: Array) -> Array:
    quotient = as_array(np.true_divide(x, y))
    np.copyto(quotient, 0, where=np.equal(y, 0))
    return quotient


_divide_no_nan_pair = binary(operation("DivNoNan", _divide_no_nan, shape=broadcasting, fault=same_shapes))


def divide_no_nan(x: Any, y: Any, name: str | None = None) -> EagerTensor:
    """Divide; where ``y`` is zero the result is. As ``tf.math.divide_no_nan``.

    Integers become floats first, as in ``truediv``.

    Raises:
        TypeError: The operands have different types.
    """
    if not isinstance(x, Tensor) and isinstance(y, Tensor):
        y = to_tensor(y)
        x = to_tensor(x, like=y._dtype)
    x, y = _operands(x, y, "tf.math.divide_no_nan")
    return _divide_no_nan_pair(x, y, name)


def reciprocal_no_nan(x: Any, name: str | None = None) -> EagerTensor:
    """One divided by the element, and zero where that is zero. As ``tf.math.reciprocal_no_nan``."""
    x = to_tensor(x)
    return _divide_no_nan_pair(to_tensor(1, x._dtype), x, name)


__all__ = [
    "divide",
    "divide_no_nan",
    "floordiv",
    "floormod",
    "mod",
    "realdiv",
    "reciprocal_no_nan",
    "truediv",
    "truncatediv",
    "truncatemod",
]
