"""Checks of the arguments of a data set's methods, with TensorFlow's errors."""

import contextlib
import operator
from typing import Any

from allotment.errors import InvalidArgumentError


def integer_argument(value: Any, name: str) -> int:
    """Convert an argument to an integer.

    Raises:
        TypeError: It is none; ``name`` names the argument in the message.
    """
    if not isinstance(value, bool):
        with contextlib.suppress(TypeError):
            return operator.index(value)
    raise TypeError(f"{name} must be an integer, not {value!r}")


def invalid_argument(message: str, op: str) -> InvalidArgumentError:
    """Make the error of an invalid argument of a TensorFlow operation."""
    return InvalidArgumentError(None, None, f"{message} [Op:{op}] name: ")


def check_function(function: Any) -> None:
    """Check that an argument is callable.

    Raises:
        ValueError: It is not.
    """
    if not callable(function):
        raise ValueError(
            f"Argument `func` must be a callable. Received func={function} (of type {type(function)})"
        )


__all__ = ["check_function", "integer_argument", "invalid_argument"]
