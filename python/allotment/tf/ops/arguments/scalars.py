"""Single floats and switches as arguments of operations; whole numbers are in ``arguments``."""

from typing import Any


def float_argument(value: Any, what: str) -> float:
    """A float from a number, or an array or tensor of one.

    Raises:
        TypeError: It is none of these; the text says what the argument is called.
    """
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        error.__traceback__ = None
        raise TypeError(f"{what} must be one number, not {value!r}") from None


def flag_argument(value: Any, what: str) -> bool:
    """A switch from anything that is true or false.

    Raises:
        TypeError: It is neither, as are several values; the text says what the argument is called.
    """
    if type(value) is bool:
        return value
    try:
        return bool(value)
    except (TypeError, ValueError) as error:
        error.__traceback__ = None
        raise TypeError(f"{what} must be true or false, not {value!r}") from None


def attribute_flag(value: Any, what: str, default: bool = False) -> bool:
    """A switch that is an attribute of TensorFlow's operation: Python's own truth values alone, ``None`` by default.

    Raises:
        TypeError: Anything else; the text says what the argument is called.
    """
    if type(value) is bool:
        return value
    if value is None:
        return default
    raise TypeError(f"Expected bool for argument '{what}' not {value!r}.")


__all__ = ["attribute_flag", "flag_argument", "float_argument"]
