"""The precision that figures are computed in."""

from typing import Any

from allotment.dtypes import float16, float32
from allotment.ops.array import cast
from allotment.ops.convert import to_tensor
from allotment.tensor import EagerTensor


def widened(values: Any) -> EagerTensor:
    """Values as a tensor, floats of 16 bits in single precision: sums and logarithms leave the range of those."""
    tensor = to_tensor(values)
    return cast(tensor, float32) if tensor._dtype is float16 else tensor


__all__ = ["widened"]
