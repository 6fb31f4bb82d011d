"""The operation ``Pack``, which joins tensors along a new axis; nested sequences with tensors are converted with it."""

from typing import Final

import numpy as np

from allotment.tf.ops.arrays import Array
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.table import dims, operation


def _stack_fault(*arrays: Array, axis: int) -> str | None:
    for index, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            return (
                f"Shapes of all inputs must match: values[0].shape = {dims(arrays[0])} != "
                f"values[{index}].shape = {dims(array)}"
            )
    return None


def _pack_shape(c: Inference, axis: int) -> list[Output]:
    lengths = c.all_merged(c.shapes())
    if lengths is None:
        return c.one(None)
    place = c.axis(axis, len(lengths) + 1)
    return c.one((*lengths[:place], len(c.inputs), *lengths[place:]))


PACK: Final = operation(
    "Pack",
    lambda *arrays, axis: np.stack(arrays, axis),
    shape=_pack_shape,
    fault=_stack_fault,
)

__all__ = ["PACK"]
