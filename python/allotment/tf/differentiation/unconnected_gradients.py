"""``tf.UnconnectedGradients``: the option for gradients of sources on which no target depends."""

import enum
from typing import Any


class UnconnectedGradients(enum.Enum):
    """The gradient of a source on which no target depends: ``None`` or zeros. As ``tf.UnconnectedGradients``."""

    NONE = "none"
    ZERO = "zero"


def unconnected_argument(value: Any) -> UnconnectedGradients:
    """Convert an argument ``unconnected_gradients``, such as ``"zero"``, to the option.

    Raises:
        ValueError: The value is not an option.
    """
    try:
        return UnconnectedGradients(value)
    except ValueError as error:
        error.__traceback__ = None
        raise ValueError(f"Unknown value for unconnected_gradients: {value!r}") from None


__all__ = ["UnconnectedGradients", "unconnected_argument"]
