"""Element-wise arithmetic. Division has a file of its own, and so have functions of real numbers."""

from typing import Any

import numpy as np

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.arrays import Array, as_array, in_single
from allotment.tf.ops.blocks import limit
from allotment.tf.ops.convert import to_pair_by_first, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import broadcasting, real_valued, unchanged
from allotment.tf.ops.known_shapes import agree as _agree
from allotment.tf.ops.math.division import divide_no_nan
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.public import binary, public, public_binary, public_unary, unary
from allotment.tf.ops.table import operation
from allotment.tf.ops.table import same_shapes as _same_shapes
from allotment.tf.tensors.indexed_slices import IndexedSlices
from allotment.tf.tensors.tensor import EagerTensor


def _join(x: Array, y: Array) -> Array:
    # An array for a result of rank 0, too: NumPy would make one of fixed width of a single text.
    result = np.empty(np.broadcast_shapes(x.shape, y.shape), object)
    return np.add(x, y, out=result)


add = public(
    binary(
        operation("AddV2", np.add, shape=broadcasting, fault=_same_shapes),
        texts=operation("Add", _join, shape=broadcasting, fault=_same_shapes),
        pair=to_pair_by_first,
        called="Add",
    ),
    "add",
    "Add; texts are joined. As ``tf.add``.",
)

subtract = public_binary(
    "subtract",
    "Sub",
    np.subtract,
    "Subtract ``y`` from ``x``. As ``tf.subtract``.",
)
multiply = public_binary(
    "multiply",
    "Mul",
    np.multiply,
    "Multiply element by element. As ``tf.multiply``.",
)


def _extreme(ufunc: np.ufunc) -> Any:
    def kernel(x: Array, y: Array) -> Any:
        if y.size == 1 < x.size and y.ndim <= x.ndim:
            return limit(ufunc, x, y)
        return ufunc(x, y)

    return kernel


maximum = public_binary(
    "maximum",
    "Maximum",
    _extreme(np.maximum),
    "The larger of two elements; a NaN if one is. As ``tf.maximum``.",
)
minimum = public_binary(
    "minimum",
    "Minimum",
    _extreme(np.minimum),
    "The smaller of two elements; a NaN if one is. As ``tf.minimum``.",
)


def _power_fault(x: Array, y: Array) -> str | None:
    if y.dtype.kind == "i" and y.size and y.min() < 0:
        return "Integers to negative integer powers are not allowed"
    return _same_shapes(x, y)


pow = public_binary(  # noqa: A001 - the name TensorFlow has
    "pow",
    "Pow",
    # NumPy refuses negative powers of integers, too; the words are then looked up.
    np.power,
    "``x`` to the power of ``y``; integers stay integers, wrap around, and take no negative power. As ``tf.pow``.",
    fault=_power_fault,
)


def _squared_difference(x: Array, y: Array) -> Any:
    difference = as_array(np.subtract(x, y))
    if difference.dtype.kind == "c":
        return np.square(difference.real) + np.square(difference.imag) + 0j
    return np.square(difference, out=difference)


squared_difference = public_binary(
    "squared_difference",
    "SquaredDifference",
    in_single(_squared_difference),
    "The square of the difference, of complex numbers that of its absolute value. As ``tf.math.squared_difference``.",
)


def _multiply_no_nan(x: Array, y: Array) -> Array:
    product = as_array(np.multiply(x, y))
    # A zero wins over what would make it a NaN.
    np.copyto(product, 0, where=np.equal(y, 0))
    return product


_multiply_no_nan_pair = binary(
    operation("MulNoNan", _multiply_no_nan, shape=broadcasting, fault=_same_shapes)
)


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> EagerTensor:
    """Multiply; where ``y`` is zero the result is, even if ``x`` is infinite or a NaN.

    As ``tf.math.multiply_no_nan``.

    Raises:
        ValueError: ``y`` is a tensor of another type.
    """
    x = to_tensor(x)
    return _multiply_no_nan_pair(x, to_tensor(y, x._dtype), name)


negative = public_unary("negative", "Neg", np.negative, "Change the sign. As ``tf.negative``.")
_sign = unary(operation("Sign", np.sign, shape=unchanged))


def sign(x: Any, name: str | None = None) -> EagerTensor:
    """-1, 0 or 1 by the sign; of a complex number the one on the unit circle. As ``tf.sign``."""
    x = to_tensor(x)
    if x._dtype.is_complex:
        return divide_no_nan(x, cast(abs(x), x._dtype), name)
    return _sign(x, name)


square = public_unary("square", "Square", np.square, "Multiply with itself. As ``tf.square``.")
reciprocal = public_unary(
    "reciprocal",
    "Reciprocal",
    np.reciprocal,
    "One divided by the element. As ``tf.math.reciprocal``.",
)

_abs = unary(operation("Abs", np.abs, shape=unchanged))
_complex_abs = operation("ComplexAbs", np.abs, shape=real_valued)


def abs(x: Any, name: str | None = None) -> EagerTensor:  # noqa: A001 - the name TensorFlow has
    """The absolute value; that of a complex number is real. As ``tf.abs``."""
    x = to_tensor(x)
    if x._dtype.is_complex:
        return run(_complex_abs, (x,), name=name)  # type: ignore[no-any-return]
    return _abs(x, name)


@in_name_scope("clip_by_value")
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> EagerTensor:
    """Move elements outside of an interval to its nearer end. As ``tf.clip_by_value``.

    The ends may be tensors that are broadcast to the shape of ``t``. Of slices the rows are clipped as they are, and
    the result is slices.

    Raises:
        ValueError: The ends would make the result larger than ``t``.
    """
    if isinstance(t, IndexedSlices):
        clipped = clip_by_value(t.values, clip_value_min, clip_value_max, name)
        return IndexedSlices(clipped, t.indices, t.dense_shape)  # type: ignore[return-value]
    t = to_tensor(t)
    below = minimum(t, clip_value_max)
    if not _agree(below, t):
        raise ValueError(f"Shapes {t.shape} and {below.shape} are incompatible")
    clipped = maximum(below, clip_value_min, name)
    if not _agree(clipped, t):
        raise ValueError(f"Shapes {t.shape} and {clipped.shape} are incompatible")
    return clipped


__all__ = [
    "abs",
    "add",
    "clip_by_value",
    "maximum",
    "minimum",
    "multiply",
    "multiply_no_nan",
    "negative",
    "pow",
    "reciprocal",
    "sign",
    "square",
    "squared_difference",
    "subtract",
]
