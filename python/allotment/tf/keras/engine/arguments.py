"""Arguments that several layers have."""

from typing import TYPE_CHECKING, Any

from allotment.tf.keras.absent import refuse_unless_none
from allotment.tf.keras.engine.symbolic import Shape
from allotment.tf.names.missing_names import NotOfferedError
from allotment.tf.tensors.dtype import DType, as_dtype

if TYPE_CHECKING:
    from allotment.tf.keras.engine.layer import Layer


def dtype_argument(dtype: Any) -> DType:
    """The type of a layer, float32 if not given.

    Raises:
        NotOfferedError: A policy of two types.
        ValueError: No type.
    """
    if isinstance(dtype, str) and dtype.startswith("mixed_"):
        raise NotOfferedError(
            f"dtype={dtype!r} is not offered: the variables of a layer are of the type that it computes in. What is: "
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
    """A whole number above zero.

    Raises:
        ValueError: It is none; the text says what the argument is called.
    """
    if type(value) is bool or not hasattr(value, "__index__") or value.__index__() <= 0:
        raise ValueError(
            f"Received an invalid value for `{name}`, expected a positive integer. Received: {name}={value}"
        )
    return value.__index__()  # type: ignore[no-any-return]


def pair(value: Any, name: str) -> tuple[int, int]:
    """Two whole numbers above zero, from one or from two.

    Raises:
        ValueError: It is neither; the text says what the argument is called.
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
    """The lengths of axes, ``None`` for those that are not known.

    Raises:
        ValueError: It is no such list.
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
    """Whether channels are behind the samples and not at the end.

    Raises:
        ValueError: No such format.
    """
    if data_format not in (None, "channels_last", "channels_first"):
        raise ValueError(
            "The `data_format` argument must be one of {'channels_first', 'channels_last'}. "
            f"Received: {data_format}"
        )
    return data_format == "channels_first"


def padding_argument(padding: Any) -> str:
    """``"VALID"`` or ``"SAME"``.

    Raises:
        ValueError: No such padding.
    """
    if str(padding).lower() not in ("valid", "same"):
        raise ValueError(f"The `padding` argument must be one of {{'valid', 'same'}}. Received: {padding}")
    return str(padding).upper()


def refuse(layer: "Layer", kwargs: dict[str, Any], *names: str) -> None:
    """Take arguments that Keras has and a layer has not out of its keywords.

    Raises:
        NotImplementedError: One of them asks for something.
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
