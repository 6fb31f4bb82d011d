"""Checks of the arguments of a data set's methods, with TensorFlow's errors."""

import contextlib
import operator
from typing import Any, Final

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


#: A value for numbers of parallel calls and of elements to prefetch, which have no effect.
AUTOTUNE: Final = -1


def check_parallel_calls(value: Any, op: str) -> None:
    """Check a number of parallel calls, which has no effect.

    Raises:
        TypeError: It is no integer.
        InvalidArgumentError: It is less than 1 and not ``AUTOTUNE``.
    """
    if value is not None and integer_argument(value, "num_parallel_calls") < 1 and value != AUTOTUNE:
        raise invalid_argument("num_parallel_calls must be greater than zero.", op)


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
