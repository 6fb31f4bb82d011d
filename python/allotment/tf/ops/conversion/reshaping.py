"""The operation ``Reshape``, which arguments are read with, too."""

import math
from typing import Any, Final

import numpy as np

from allotment.tf.ops.arrays import Array
from allotment.tf.ops.inference.shape_functions import Inference, Output, lengths, multiplied, shape_text
from allotment.tf.ops.table import operation


def _counted(array: Array, shape: tuple[int, ...]) -> tuple[int, int]:
    """The products of the lengths of an array and of a shape with a -1 in it.

    Lengths of zero do not count where both have some, so that -1 gets a length there, too.
    """
    if 0 not in shape:
        return array.size, math.prod(length for length in shape if length != -1)
    return math.prod(filter(None, array.shape)), math.prod(each for each in shape if each not in (0, -1))


def _reshape_fault(array: Array, shape: tuple[int, ...]) -> str | None:
    known = math.prod(length for length in shape if length != -1)
    if shape.count(-1) > 1:
        return f"Only one input size may be -1, not both {shape.index(-1)} and {shape.index(-1, shape.index(-1) + 1)}"
    if -1 in shape:
        size, divisor = _counted(array, shape)
        if (0 in shape and array.size) or (0 not in array.shape and size % divisor):
            return (
                f"Input to reshape is a tensor with {array.size} values, but the requested shape requires a "
                f"multiple of {known}"
            )
    elif known != array.size:
        return f"Input to reshape is a tensor with {array.size} values, but the requested shape has {known}"
    return None


def _reshaped(array: Array, shape: tuple[int, ...]) -> Array:
    if -1 in shape and array.size == 0:
        size, divisor = _counted(array, shape)
        shape = tuple(size // divisor if length == -1 else length for length in shape)
    return np.reshape(array, shape)


def _reshape_shape(c: Inference, shape: Any) -> list[Output]:
    dims, source = lengths(shape), c.shape()
    if dims is None:
        return c.one(None)
    total = None if source is None else multiplied(*source)
    wanted = multiplied(*(each for each in dims if each is not None))
    holes = dims.count(None)
    if source is not None and source.count(None) == 1 and holes == 0 and wanted is not None:
        known = multiplied(*(each for each in source if each is not None))
        if known and wanted % known:
            c.refuse(f"Dimension size must be evenly divisible by {known} but is {wanted}")
    if total is None or wanted is None:
        return c.one(dims)
    refused = f"Cannot reshape a tensor with {total} elements to shape {shape_text(dims)}"
    if wanted != total and (holes == 0 or wanted == 0):
        c.refuse(f"{refused} ({wanted} elements)")
    if holes == 1 and wanted:
        if total % wanted:
            c.refuse(f"{refused}: {total} is not a multiple of {wanted}")
        dims = tuple(total // wanted if each is None else each for each in dims)
    return c.one(dims)


# The result shares the input's memory, as TensorFlow's does.
RESHAPE: Final = operation("Reshape", _reshaped, shape=_reshape_shape, fault=_reshape_fault)

__all__ = ["RESHAPE"]
