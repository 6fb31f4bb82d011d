"""Arguments and scopes of TensorFlow 1's layers."""

from collections.abc import Callable
from typing import Any, Final

from allotment.tf.compat.variables.get_variable import get_variable
from allotment.tf.compat.variables.scopes import variable_scope
from allotment.tf.ops.convert import to_tensor


def layer_scope(name: str | None, default: str, reuse: Any = None) -> variable_scope:
    """Make the scope of a layer's variables and nodes: of its name, or of a new name unless it is reused."""
    if name is not None or reuse:
        return variable_scope(name or default, reuse=reuse)
    return variable_scope(None, default_name=default)


def variable_maker(dtype: Any) -> Callable[..., Any]:
    """Make a function that makes or finds variables of a layer, which all have one element type."""

    def make(
        name: str, shape: list[int], initializer: Any, regularizer: Any, constraint: Any, trainable: bool
    ) -> Any:
        return get_variable(
            name,
            shape,
            dtype=dtype,
            initializer=initializer,
            regularizer=regularizer,
            constraint=constraint,
            trainable=trainable,
        )

    return make


def float_tensor(inputs: Any, layer: str) -> Any:
    """Convert inputs to a tensor of floats.

    Raises:
        TypeError: They are no floats.
    """
    tensor: Any = to_tensor(inputs)
    if not (tensor.dtype.is_floating or tensor.dtype.is_complex):
        raise TypeError(
            f"Unable to build `{layer}` layer with non-floating point (or complex) dtype {tensor.dtype!r}"
        )
    return tensor


def pair_argument(value: Any, name: str) -> list[int]:
    """Convert one or two integers to a list of two.

    Raises:
        ValueError: They are none.
    """
    values = [value, value] if isinstance(value, int) else value
    if (
        not isinstance(values, list | tuple)
        or len(values) != 2
        or not all(isinstance(each, int) for each in values)
    ):
        raise ValueError(f"The `{name}` argument must be a tuple of 2 integers. Received: {value!r}")
    return [*values]


def padding_argument(padding: str) -> str:
    """Convert a ``padding=`` argument to ``"VALID"`` or ``"SAME"``.

    Raises:
        ValueError: Another padding.
    """
    if str(padding).lower() not in ("valid", "same"):
        raise ValueError(f'The `padding` argument must be one of "valid", "same". Received: {padding}')
    return str(padding).upper()


#: The names of data formats in operations.
_FORMATS: Final = {"channels_last": "NHWC", "channels_first": "NCHW"}


def format_argument(data_format: str) -> str:
    """Convert a ``data_format=`` argument to ``"NHWC"`` or ``"NCHW"``.

    Raises:
        ValueError: Another format.
    """
    form = _FORMATS.get(str(data_format).lower())
    if form is None:
        raise ValueError(
            'The `data_format` argument must be one of "channels_first", "channels_last". '
            f"Received: {data_format}"
        )
    return form


__all__ = [
    "float_tensor",
    "format_argument",
    "layer_scope",
    "padding_argument",
    "pair_argument",
    "variable_maker",
]
