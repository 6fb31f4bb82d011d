"""Sums of several tensors."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from allotment.tf.ops.array.array import identity
from allotment.tf.ops.arrays import Array, as_array
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import equal_shapes
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.indexed_slices import IndexedSlices
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.tensors.tensor_shape import as_shape


def _add_n(*arrays: Array) -> Array:
    total = as_array(np.add(arrays[0], arrays[1]))
    for array in arrays[2:]:
        np.add(total, array, out=total)
    return total


def _unequal(*arrays: Array) -> str | None:
    for index, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            return (
                "Inputs to operation AddN of type AddN must have the same size and shape.  "
                f"Input 0: {dims(arrays[0])} != input {index}: {dims(array)}"
            )
    return None


_add_n_row = operation("AddN", _add_n, shape=equal_shapes, fault=_unequal)


def add_n(inputs: Any, name: str | None = None) -> EagerTensor:
    """Add tensors of one shape and type; a single one is returned as it is. As ``tf.add_n``.

    Raises:
        TypeError: Not an iterable.
        ValueError: Nothing in it.
        InvalidArgumentError: The shapes or types differ.
    """
    tensors = _tensors(inputs)
    if not tensors:
        raise ValueError(
            "Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype and shape."
        )
    if len(tensors) == 1:
        if name:
            return identity(tensors[0], name=name)
        return tensors[0]
    return run(_add_n_row, tensors, name=name)  # type: ignore[no-any-return]


def accumulate_n(
    inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> EagerTensor:
    """Add tensors of one shape and type, which may be given. As ``tf.math.accumulate_n``.

    Raises:
        ValueError: Not an iterable, nothing in it, or another shape or type than the ones given.
    """
    given = list(inputs) if isinstance(inputs, Iterable) else []
    tensors = _tensors(given)
    if tensors and not any(isinstance(each, IndexedSlices) for each in given):
        dtype = tensors[0]._dtype if tensor_dtype is None else as_dtype(tensor_dtype)
        wanted = tensors[0].shape if shape is None else as_shape(shape)
        if all(tensor._dtype is dtype and wanted.is_compatible_with(tensor.shape) for tensor in tensors):
            return add_n(tensors, name)
    raise ValueError("inputs must be a list of at least one Tensor with the same dtype and shape")


def _tensors(inputs: Any) -> list[EagerTensor]:
    """The tensors of an iterable, each of the type that it has by itself."""
    if not isinstance(inputs, Iterable):
        raise TypeError(f"'{type(inputs).__name__}' object is not iterable")
    return [to_tensor(value) for value in inputs]


__all__ = ["accumulate_n", "add_n"]
