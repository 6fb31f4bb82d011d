"""``tf.dtypes``: element types and casts between them."""

from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.array.array import cast, saturate_cast
from allotment.tf.ops.math.complex_numbers import complex
from allotment.tf.tensors.dtype import (
    DType,
    as_dtype,
    bool,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)

__all__ = [
    "DType",
    "as_dtype",
    "bool",
    "cast",
    "complex",
    "complex64",
    "complex128",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "saturate_cast",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

refuse_other_names(__name__)
