"""Constants: tensors of Python values and arrays."""

import math
from typing import Any

import numpy as np

from allotment.devices.dispatch import current_placement
from allotment.tf.dispatch import thread
from allotment.tf.ops.arguments.shapes import shape_argument
from allotment.tf.ops.array.creation import fill_row, shape_input
from allotment.tf.ops.array.layout import reshape
from allotment.tf.ops.conversion.constants import eager_const
from allotment.tf.ops.conversion.reshaping import RESHAPE
from allotment.tf.ops.convert import dtype_argument, to_tensor, to_tensor_if_it_fits
from allotment.tf.ops.execute import run
from allotment.tf.ops.values import TensorsInsideError
from allotment.tf.tensors.dtype import DType, as_dtype
from allotment.tf.tensors.tensor import EagerTensor, Tensor


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> EagerTensor:
    """Make a constant tensor. As ``tf.constant``.

    Args:
        value: A Python number, text, (nested) sequence of them, an array, or a tensor.
        dtype: The element type; without it that of the value: Python floats become float32, integers int32.
        shape: The shape; one number fills it, as many numbers as it has are arranged in it.
        name: Only looked at in graph mode.

    Raises:
        TypeError: The value is of another sort than the type, or has another number of elements than the shape.
        ValueError: The value is of a kind that has no tensor, or a sequence with tensors in it.
    """
    wanted = dtype_argument(dtype)
    if thread.state.graph is not None:
        return graph_constant(value, wanted, shape, name)
    if isinstance(value, EagerTensor):
        if wanted is not None and wanted is not value._dtype:
            raise TypeError(
                f"Expected tensor {value._on_host()} with dtype {wanted!r}, but got dtype {value._dtype!r}."
            )
        made = value
    else:
        # A variable's value is cast, as an array is.
        given = np.asarray(value) if hasattr(value, "_as_tensor") else value
        try:
            made = eager_const(given, wanted)
        except TensorsInsideError as error:
            error.__traceback__ = None
            raise ValueError(str(error)) from None
    if shape is None:
        return made
    lengths = shape_argument(shape)
    if any(length < 0 for length in lengths):
        raise ValueError(f"Dimension {min(lengths)} must be >= 0")
    if lengths == made._array.shape:
        return made
    if math.prod(lengths) == made._array.size:
        return run(RESHAPE, (made,), shape_input(lengths))  # type: ignore[no-any-return]
    if made._array.size == 1:
        return run(fill_row, (reshape(made, ()),), shape_input(lengths))  # type: ignore[no-any-return]
    raise TypeError(
        f"Eager execution of tf.constant with unsupported shape. Tensor {made._on_host()} (converted from {value}) has "
        f"{made._array.size:d} elements, but got `shape` {lengths} with {math.prod(lengths):d} elements)."
    )


def graph_constant(
    value: Any, dtype: DType | None, shape: Any, name: str, *, repeats_last: bool = False
) -> EagerTensor:
    """Add a constant to the graph; the last of too few values may fill the shape.

    Raises:
        TypeError: A tensor, or a sequence with tensors in it; another number of values than the shape has.
        ValueError: A value that no tensor can hold.
    """
    if isinstance(value, Tensor):
        raise TypeError(f"a constant of a graph is made of a value, and {value!r} is a tensor of its own")
    recording: Any = current_placement()
    lengths = None if shape is None else shape_argument(shape)
    try:
        return recording.constant(value, dtype, lengths, name, repeats_last)  # type: ignore[no-any-return]
    except TensorsInsideError as error:
        error.__traceback__ = None
        raise TypeError(str(error)) from None


def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None
) -> EagerTensor:
    """Convert a value to a tensor; a tensor is returned as it is. As ``tf.convert_to_tensor``.

    Raises:
        ValueError: A tensor of another type than ``dtype``, or a value of a kind that has no tensor.
        TypeError: The value does not fit ``dtype``.
    """
    if dtype is None:
        return to_tensor_if_it_fits(value, dtype_argument(dtype_hint))
    return to_tensor(value, as_dtype(dtype))


__all__ = ["constant", "convert_to_tensor", "graph_constant"]
