"""Functions with the arguments that TensorFlow 1 had: old names of arguments, and casts with names of their own."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from allotment.ops.array import cast
from allotment.ops.convert import to_pair
from allotment.ops.division import floordiv, real_divide

_REDUCE: Final = {"reduction_indices": "axis", "keep_dims": "keepdims"}
#: Old names of arguments, by function.
RENAMED: Final[dict[str, dict[str, str]]] = {
    **{
        f"reduce_{what}": _REDUCE for what in ("all", "any", "logsumexp", "max", "mean", "min", "prod", "sum")
    },
    "argmax": {"dimension": "axis"},
    "argmin": {"dimension": "axis"},
    "expand_dims": {"dim": "axis"},
    "norm": {"keep_dims": "keepdims"},
    "squeeze": {"squeeze_dims": "axis"},
}


def renamed(function: Callable[..., Any], names: dict[str, str]) -> Callable[..., Any]:
    """A function that takes its arguments by their old names, too.

    Raises:
        ValueError: When called: an argument is given by both names.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for old, new in names.items():
            if old in kwargs:
                if kwargs.get(new) is not None:
                    raise ValueError(f"Cannot specify both '{new}' and '{old}'.")
                kwargs[new] = kwargs.pop(old)
        return function(*args, **kwargs)

    return call


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
    return (floordiv if x.dtype.is_integer else real_divide)(x, y, name)


__all__ = ["RENAMED", "div", "renamed", "to_double", "to_float", "to_int32", "to_int64"]
