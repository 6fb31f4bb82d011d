"""Axes of reductions, as users give them and as functions of arrays want them."""

from typing import Any

from allotment.ops.arrays import Array
from allotment.ops.shapes import axis_argument

#: Axes of an array, ``None`` for all.
Axes = tuple[int, ...] | None


def axes_argument(axis: Any) -> Axes:
    """Axes from ``None``, a number, or a sequence, array or tensor of numbers.

    Raises:
        TypeError: It is none of these.
    """
    if type(axis) is int:
        return (axis,)
    try:
        return axis_argument(axis)
    except TypeError:
        raise TypeError(f"axis must be None, a whole number or a sequence of them, not {axis!r}") from None


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
