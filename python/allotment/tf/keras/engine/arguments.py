"""Checks and conversions of arguments that several layers have."""

from typing import Any

from allotment.tf.keras.absent import refuse_unless_none
from allotment.tf.keras.engine.symbolic import Shape
from allotment.tf.names.missing_names import NotOfferedError
from allotment.tf.tensors.dtype import DType, as_dtype


def dtype_argument(dtype: Any) -> DType:
    """Convert the ``dtype=`` of a layer, float32 if it is ``None``.

    Raises:
        NotOfferedError: A mixed-precision policy.
        ValueError: Not a type.
    """
    if isinstance(dtype, dict):
        # As ``get_config`` tells it.
        dtype = dtype.get("config", {}).get("name", dtype)
    if isinstance(dtype, str) and dtype.startswith("mixed_"):
        raise NotOfferedError(
            f"dtype={dtype!r} is not offered: the variables of a layer are of the type that it computes in. Available: "
            "float16, float32, float64."
        )
    try:
        return as_dtype("float32" if dtype is None else dtype)
    except TypeError as error:
        error.__traceback__ = None
        raise ValueError(
            f"Cannot convert {dtype!r} to the type of a layer: float16, float32 and float64 are offered."
        ) from None


def positive(value: Any, name: str) -> int:
    """Convert an argument to a positive integer.

    Raises:
        ValueError: It is none; ``name`` names the argument in the message.
    """
    if type(value) is bool or not hasattr(value, "__index__") or value.__index__() <= 0:
        raise ValueError(
            f"Received an invalid value for `{name}`, expected a positive integer. Received: {name}={value}"
        )
    return value.__index__()  # type: ignore[no-any-return]


def pair(value: Any, name: str) -> tuple[int, int]:
    """Convert one or two positive integers to a pair.

    Raises:
        ValueError: It is neither; ``name`` names the argument in the message.
    """
    values = (value, value) if hasattr(value, "__index__") else value
    try:
        first, second = values
        return positive(first, name), positive(second, name)
    except (TypeError, ValueError) as error:
        error.__traceback__ = None
        raise ValueError(
            f"The `{name}` argument must be a tuple of 2 positive integers. Received {name}={value}"
        ) from None


def shape_of_sample(shape: Any) -> Shape:
    """Convert a shape argument to a tuple of lengths, with ``None`` for unknown lengths.

    Raises:
        ValueError: It is no shape.
    """
    lengths = shape if isinstance(shape, list | tuple) else getattr(shape, "_dims", None)
    found = () if lengths is None else tuple(map(_length, lengths))
    if lengths is None or any(each is not None and each < 0 for each in found):
        raise ValueError(f"Cannot convert {shape!r} to a shape.")
    return found


def _length(value: Any) -> int | None:
    if value is None:
        return None
    return value.__index__() if hasattr(value, "__index__") and not isinstance(value, bool) else -1


def channels_first(data_format: str | None) -> bool:
    """Whether ``data_format`` puts the axis of channels second, not last.

    Raises:
        ValueError: Another format.
    """
    if data_format not in (None, "channels_last", "channels_first"):
        raise ValueError(
            "The `data_format` argument must be one of {'channels_first', 'channels_last'}. "
            f"Received: {data_format}"
        )
    return data_format == "channels_first"


def padding_argument(padding: Any) -> str:
    """Convert a ``padding=`` argument to ``"VALID"`` or ``"SAME"``.

    Raises:
        ValueError: Another padding.
    """
    if str(padding).lower() not in ("valid", "same"):
        raise ValueError(f"The `padding` argument must be one of {{'valid', 'same'}}. Received: {padding}")
    return str(padding).upper()


def refuse(layer: object, kwargs: dict[str, Any], *names: str) -> None:
    """Remove keywords that Keras has and this package does not offer.

    Raises:
        NotImplementedError: One of them has a value other than its default.
    """
    refuse_unless_none(type(layer).__name__, **{name: kwargs.pop(name) for name in names if name in kwargs})


__all__ = [
    "channels_first",
    "dtype_argument",
    "padding_argument",
    "pair",
    "positive",
    "refuse",
    "shape_of_sample",
]
