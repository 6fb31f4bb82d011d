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


__all__ = ["flag_argument", "float_argument"]
