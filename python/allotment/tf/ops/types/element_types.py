"""Which element types operations take, and the errors for tensors of another type."""

from typing import Final

from allotment.tf.dispatch import thread
from allotment.tf.ops import faults
from allotment.tf.ops.types.kernel_types import KERNEL_TYPES
from allotment.tf.ops.types.type_checks import TypeProblem
from allotment.tf.tensors.dtype import (
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

FLOATS: Final = (float16, float32, float64)
COMPLEX: Final = (complex64, complex128)
#: Floats and complex numbers: what has a square root.
INEXACT: Final = FLOATS + COMPLEX
SIGNED_INTEGERS: Final = (int8, int16, int32, int64)
INTEGERS: Final = (*SIGNED_INTEGERS, uint8, uint16, uint32, uint64)
#: Types with an order.
REALS: Final = FLOATS + INTEGERS
#: Types that can be added.
NUMBERS: Final = REALS + COMPLEX
#: Types of counts and positions.
INDICES: Final = (int32, int64)


def check_attribute(op: str, attribute: str, dtype: DType, name: str | None = None) -> None:
    """Check an argument that is the value of an attribute of an operation: the type of its result, say.

    Raises:
        InvalidArgumentError: TensorFlow's operation does not allow it; the text lists the types that it allows.
        TypeError: The same in a graph.
    """
    allowed = KERNEL_TYPES[op][1][attribute][0].split()
    if dtype.name in allowed:
        return
    problem = TypeProblem("not allowed", 0, attribute, dtype, attribute=attribute, allowed=tuple(allowed))
    if thread.state.graph is not None:
        raise faults.of_types_in_graph(op, problem)
    raise faults.of_types(op, problem, name)
