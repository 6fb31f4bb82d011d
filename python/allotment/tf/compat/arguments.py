"""Functions of TensorFlow 1 that are others today: casts with names of their own, and its quotient."""

from collections.abc import Callable
from typing import Any

from allotment.tf.ops.array import cast
from allotment.tf.ops.convert import to_pair
from allotment.tf.ops.division import floordiv, realdiv


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
    """The quotient, of integers rounded down. As ``tf.compat.v1.div``."""
    x, y = to_pair(x, y)
    return (floordiv if x.dtype.is_integer else realdiv)(x, y, name)


__all__ = ["div", "to_double", "to_float", "to_int32", "to_int64"]
