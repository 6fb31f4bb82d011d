"""What is said of gradients of what nothing depends on."""

import enum
from typing import Any


class UnconnectedGradients(enum.Enum):
    """What the gradient is of a source on which no target depends. As ``tf.UnconnectedGradients``."""

    NONE = "none"
    ZERO = "zero"


def unconnected_argument(value: Any) -> UnconnectedGradients:
    """Read an argument.

    Raises:
        ValueError: It is none of the two.
    """
    try:
        return UnconnectedGradients(value)
    except ValueError as error:
        error.__traceback__ = None
        raise ValueError(f"Unknown value for unconnected_gradients: {value!r}") from None


__all__ = ["UnconnectedGradients", "unconnected_argument"]
