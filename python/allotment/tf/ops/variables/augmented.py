"""Augmented assignment, which variables refuse: it would silently put a tensor in the variable's place."""

from collections.abc import Callable
from typing import Any, Final, NoReturn


def _refusing(text: str) -> Callable[[Any, Any], NoReturn]:
    def method(self: Any, value: Any) -> NoReturn:
        raise RuntimeError(text)

    return method


def _refusing_assignment(name: str, method: str, instead: str) -> Callable[[Any, Any], NoReturn]:
    return _refusing(
        f"`variable {name}= value` with `tf.Variable`s is not supported. Use `variable.{method}(value)` to modify "
        f"the variable, or `out = variable {instead} value` if you need to get a new output Tensor."
    )


def _refusing_computation(name: str) -> Callable[[Any, Any], NoReturn]:
    return _refusing(
        f"`var {name}= value` with `tf.Variable`s is not supported. Use `var.assign(var {name} value)` to modify the "
        f"variable, or `out = var {name} value` if you need to get a new output Tensor."
    )


#: Methods by name. As TensorFlow's, others than these compute with the value, and ``-=`` speaks of ``*``.
AUGMENTED: Final[dict[str, Callable[..., Any]]] = {
    "__iadd__": _refusing_assignment("+", "assign_add", "+"),
    "__imul__": _refusing_computation("*"),
    "__ipow__": _refusing_computation("**"),
    "__isub__": _refusing_assignment("-", "assign_sub", "*"),
    "__itruediv__": _refusing_computation("/"),
}

__all__ = ["AUGMENTED"]
