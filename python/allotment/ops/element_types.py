"""Which element types operations take, and the errors for tensors of another type."""

from typing import Final

from allotment import errors
from allotment.dtypes import (
    DType,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from allotment.dtypes import bool as bool_
from allotment.ops import faults
from allotment.tensor import EagerTensor

FLOATS: Final = (float16, float32, float64)
COMPLEX: Final = (complex64, complex128)
#: Floats and complex numbers: what has a square root.
INEXACT: Final = FLOATS + COMPLEX
SIGNED_INTEGERS: Final = (int8, int16, int32, int64)
INTEGERS: Final = (*SIGNED_INTEGERS, uint8, uint16, uint32, uint64)
#: What has an order.
REALS: Final = FLOATS + INTEGERS
#: What has a sign.
SIGNED: Final = INEXACT + SIGNED_INTEGERS
#: What can be added; truth values cannot.
NUMBERS: Final = REALS + COMPLEX
TRUTHS: Final = (bool_,)
#: What counts and positions are given in.
INDICES: Final = (int32, int64)


def anything(dtype: DType) -> bool:
    """``takes`` of what does not look at the elements."""
    return True


def check_type(op: str, wanted: DType, *tensors: EagerTensor, name: str | None = None) -> None:
    """Check that all inputs of an operation have its one type.

    Raises:
        InvalidArgumentError: One has another; the text names its number and both types.
    """
    for index, tensor in enumerate(tensors):
        if tensor._dtype is not wanted:
            raise faults.mismatched(op, index, wanted, tensor._dtype, name)


def check_attribute(
    op: str, attribute: str, dtype: DType, allowed: tuple[DType, ...], name: str | None = None
) -> None:
    """Check a type of an operation that has several: that of its indices, say.

    Raises:
        InvalidArgumentError: It is not one of those allowed, which the text lists.
    """
    if dtype not in allowed:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Value for attr '{attribute}' of {dtype.error_name} is not in the list of allowed values: "
            f"{', '.join(each.error_name for each in allowed)}{faults.tail(op, name)}",
        )
