"""Functions of TensorFlow 1 that TensorFlow 2 replaced: ``to_float`` and other casts, ``div`` and ``ones_like``."""

from collections.abc import Callable
from typing import Any

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.creation import ones
from allotment.tf.ops.array.shapes import shape
from allotment.tf.ops.convert import tensor_or_slices, to_pair, to_tensor
from allotment.tf.ops.math.division import floordiv, realdiv
from allotment.tf.tensors.dtype import as_dtype


def _caster(name: str, default: str, dtype: str) -> Callable[..., Any]:
    def call(x: Any, name: str = default) -> Any:
        return cast(x, dtype, name)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Change the element type to {dtype}. As ``tf.compat.v1.{name}``."
    return call


to_double = _caster("to_double", "ToDouble", "float64")
to_float = _caster("to_float", "ToFloat", "float32")
to_int32 = _caster("to_int32", "ToInt32", "int32")
to_int64 = _caster("to_int64", "ToInt64", "int64")


def div(x: Any, y: Any, name: str | None = None) -> Any:
    """Divide; the quotient of integers is rounded down. As ``tf.compat.v1.div``."""
    x, y = to_pair(x, y)
    return (floordiv if x.dtype.is_integer else realdiv)(x, y, name)


def convert_to_tensor_or_indexed_slices(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Convert a value to a tensor; slices stay slices. As ``tf.compat.v1.convert_to_tensor_or_indexed_slices``.

    Raises:
        ValueError: The slices, or a tensor, have another type than ``dtype``.
    """
    del name
    return tensor_or_slices(value, None if dtype is None else as_dtype(dtype))


def ones_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Any:
    """Make a tensor of ones with the shape of another. As ``tf.compat.v1.ones_like``.

    Args:
        tensor: The tensor with the shape.
        dtype: The element type, that of ``tensor`` unless given.
        name: The name of the operation.
        optimize: Has no effect.

    Raises:
        TypeError: The type has no number 1.
    """
    del optimize
    like = to_tensor(tensor)
    return ones(shape(like), like.dtype if dtype is None else dtype, name)


__all__ = [
    "convert_to_tensor_or_indexed_slices",
    "div",
    "ones_like",
    "to_double",
    "to_float",
    "to_int32",
    "to_int64",
]
