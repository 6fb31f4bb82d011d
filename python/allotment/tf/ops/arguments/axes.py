"""Axes of reductions, as users give them and as functions of arrays want them."""

from typing import Any

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.arguments.integers import deferred_vector
from allotment.tf.ops.arguments.shapes import shape_argument
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.types.element_types import check_attribute
from allotment.tf.tensors.dtype import DType, float32, float64, string
from allotment.tf.tensors.dtype import bool as bool_

#: Axes of an array, ``None`` for all.
Axes = tuple[int, ...] | None


def axes_argument(axis: Any) -> Axes:
    """Axes from ``None``, a number, or a sequence, array or tensor of numbers.

    Raises:
        InvalidArgumentError, ValueError: It is none of these.
    """
    if type(axis) is int:
        return (axis,)
    if isinstance(axis, list) and axis and all(type(each) is list for each in axis):
        if thread.state.graph is not None:
            # The function of the shape refuses it.
            return tuple(map(tuple, axis))  # type: ignore[arg-type]
        # For a kernel a matrix of axes counts as all of them.
        axis = [each for row in axis for each in row]
    if axis is None:
        return None
    axes = shape_argument(axis, "axis must be None, a whole number or a sequence of them")
    return deferred_vector(axes)  # type: ignore[no-any-return]


def check_whole(
    op: str, attribute: str, value: Any, name: str | None = None, *, is_int32: bool = True
) -> None:
    """Check that an argument that TensorFlow takes as a tensor is of whole numbers.

    ``is_int32``: a Python number is converted to int32, which is the conversion's error of a float.

    Raises:
        InvalidArgumentError: It has; the text is of its element type.
    """
    if type(value) is int or value is None or (is_int32 and type(value) is float):
        return
    if isinstance(value, np.ndarray) and not value.size:
        return
    first = value[0] if isinstance(value, list | tuple) and value else value
    found: DType | None = None
    if isinstance(first, str | bytes):
        found = string
    elif isinstance(first, bool) and not is_int32:
        found = bool_
    elif isinstance(first, float | np.floating) or getattr(getattr(first, "dtype", None), "kind", "") == "f":
        found = float64 if isinstance(first, np.float64) else float32
    if found is not None:
        check_attribute(op, attribute, found, name)


def axes_fault(array: Array, axes: Axes) -> str | None:
    """TensorFlow's words for axes that an array has not, or ``None``."""
    seen = set()
    for axis in axes or ():
        if not -array.ndim <= axis < array.ndim:
            return f"Invalid reduction dimension ({axis} for input with {array.ndim} dimension(s)"
        if axis % array.ndim in seen:
            return f"Invalid reduction arguments: Axes contains duplicate dimension: {axis % array.ndim}"
        seen.add(axis % array.ndim)
    return None


def axis_fault(array: Array, axis: int) -> str | None:
    """TensorFlow's words for the one axis of an operation that an array has not, or ``None``."""
    if not -array.ndim <= axis < array.ndim:
        return f"Expected dimension in the range [{-array.ndim}, {array.ndim}), but got {axis}"
    return None
