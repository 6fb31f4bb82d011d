"""Shapes, axes and sizes as arguments of operations."""

from typing import Any, SupportsIndex

import numpy as np

from allotment.tensor import Tensor
from allotment.tensor_shape import TensorShape


def shape_argument(shape: Any) -> tuple[int, ...]:
    """Lengths from a number, a sequence, a ``TensorShape``, an array or a tensor; -1 is left to the operation.

    Raises:
        TypeError: It is none of these, or a length is no whole number.
    """
    if type(shape) is int:
        return (shape,)
    if isinstance(shape, Tensor):
        # Of a graph's tensor only what is known is there to be read.
        shape = np.asarray(shape._array)
    if isinstance(shape, np.ndarray):
        if shape.dtype.kind not in "iu" and shape.size:
            raise TypeError(f"a shape must be whole numbers, not {shape.dtype}")
        return tuple(int(length) for length in shape.reshape(-1))
    if isinstance(shape, TensorShape | list | tuple):
        return tuple(_length(length) for length in shape)
    if isinstance(shape, SupportsIndex):
        return (shape.__index__(),)
    raise TypeError(f"a shape must be whole numbers, not {shape!r}")


def axis_argument(axis: Any) -> tuple[int, ...] | None:
    """Axes from a number, a sequence or a tensor; ``None`` means all."""
    return None if axis is None else shape_argument(axis)


def _length(length: Any) -> int:
    # The usual case first: asking for a protocol takes microseconds.
    if type(length) is int:
        return length
    if isinstance(length, SupportsIndex) and not isinstance(length, bool):
        return length.__index__()
    raise TypeError(f"a shape must be whole numbers, not {length!r}")
