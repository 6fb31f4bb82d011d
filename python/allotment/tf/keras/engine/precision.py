"""Conversion of the operands of losses and metrics to the element type that they compute in."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import DType, as_dtype, float16, float32
from allotment.tf.tensors.tensor import EagerTensor, Tensor
from allotment.tf.variables.variable import Variable


def widened(values: Any) -> EagerTensor:
    """Convert values to a tensor, floats of 16 bits to single precision: their sums leave the range of 16 bits."""
    tensor = to_tensor(values)
    return cast(tensor, float32) if tensor._dtype is float16 else tensor


def converted(values: Any, dtype: Any) -> EagerTensor:
    """Convert values to a tensor of a type: a tensor of another type is cast.

    Raises:
        TypeError: Python values that the type cannot hold, such as texts for a float.
    """
    wanted: DType = as_dtype(dtype)
    if isinstance(values, Tensor | Variable) or not (wanted.is_floating or wanted.is_complex):
        return cast(values, wanted)
    return cast(to_tensor(values, like=wanted), wanted)


def promoted(values: Sequence[EagerTensor]) -> list[EagerTensor]:
    """Convert tensors to one type: a float if one of them has it, else the least that holds all of their values."""
    dtypes = {each._dtype for each in values}
    if len(dtypes) == 1:
        return list(values)
    kinds = [each.as_numpy_dtype for each in dtypes]
    floats = [each for each in kinds if np.issubdtype(each, np.inexact)]
    wanted = as_dtype(np.result_type(*(floats or kinds)))
    return [cast(each, wanted) for each in values]


__all__ = ["converted", "promoted", "widened"]
