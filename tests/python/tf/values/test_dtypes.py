"""Element types: their names and numbers, what they say of themselves, and what stands for them."""

import re
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from support.tf.tensors import check

#: TensorFlow's number, and the bytes of an element.
TYPES = {
    tf.float16: (19, 2),
    tf.float32: (1, 4),
    tf.float64: (2, 8),
    tf.int8: (6, 1),
    tf.int16: (5, 2),
    tf.int32: (3, 4),
    tf.int64: (9, 8),
    tf.uint8: (4, 1),
    tf.uint16: (17, 2),
    tf.uint32: (22, 4),
    tf.uint64: (23, 8),
    tf.bool: (10, 1),
    tf.complex64: (8, 8),
    tf.complex128: (18, 16),
    tf.string: (7, 0),
}


def test_types_have_numbers_and_sizes() -> None:
    for dtype, (number, size) in TYPES.items():
        assert (dtype.as_datatype_enum, hash(dtype), dtype.size) == (number, number, size)
        assert tf.as_dtype(number) is dtype
        assert tf.as_dtype(dtype.name) is dtype
        assert dtype == number
        assert dtype.is_compatible_with(dtype.name)
        assert not dtype.is_quantized
        assert dtype.is_numpy_compatible
        assert dtype.is_numeric == (dtype not in (tf.bool, tf.string))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (float, tf.float32),
        (bool, tf.bool),
        (object, tf.string),
        (np.float32, tf.float32),
        (np.dtype("int8"), tf.int8),
        (np.dtype(">i4"), tf.int32),
        (np.dtype("U5"), tf.string),
        (np.str_, tf.string),
        (np.array([1]), tf.int64),
        ("double", tf.float64),
        ("half", tf.float16),
        (1.0, tf.float32),
    ],
)
def test_what_stands_for_a_type(value: Any, dtype: Any) -> None:
    assert tf.as_dtype(value) is dtype
    assert tf.dtypes.as_dtype(value) is dtype


@pytest.mark.parametrize(
    "value", [int, str, bytes, complex, "int", "str", "f4", "O", "x", 0, 100, -1, None, [], np.longdouble]
)
def test_what_stands_for_none(value: Any) -> None:
    text = f"Cannot convert the argument `type_value`: {value!r} to a TensorFlow DType."
    with pytest.raises(TypeError, match=re.escape(text)):
        tf.as_dtype(value)
    assert tf.float32 != value
    assert tf.int32 != value


def test_limits() -> None:
    assert tf.uint8.limits == (0, 255)
    assert tf.int8.limits == (0, 127)
    assert tf.float32.limits == (0, 1)
    assert tf.bool.limits == (0, True)
    for dtype in (tf.float16, tf.string, tf.complex64):
        with pytest.raises(ValueError, match=re.escape(f"{dtype} does not have defined limits.")):
            _ = dtype.limits
    assert (tf.int64.min, tf.uint64.max, tf.float16.max) == (-(2**63), 2**64 - 1, 65504)
    for which, name in (("min", "minimum"), ("max", "maximum")):
        text = f"Cannot find {name} value of <dtype: 'bool'> with type <dtype: 'bool'>."
        with pytest.raises(TypeError, match=re.escape(text)):
            getattr(tf.bool, which)


def test_types_compare_with_types_only() -> None:
    assert tf.float32.is_compatible_with(np.float32)
    assert not tf.float32.is_compatible_with(tf.float64)
    with pytest.raises(TypeError, match="'x' to a TensorFlow DType"):
        tf.float32.is_compatible_with("x")
    assert tf.float32.is_subtype_of(tf.float32)
    assert not tf.float32.is_subtype_of(tf.float64)
    assert tf.float32.most_specific_common_supertype([tf.float32]) is tf.float32
    assert tf.float32.most_specific_common_supertype([tf.float64]) is None


def test_the_module_has_the_casts() -> None:
    check(tf.dtypes.cast(1.5, tf.int32), 1, "int32")
    check(tf.dtypes.saturate_cast(300, tf.uint8), 255, "uint8")
    check(tf.dtypes.complex(1.0, 2.0), 1 + 2j, "complex64")
    name = "nothing"
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(tf.dtypes, name)
