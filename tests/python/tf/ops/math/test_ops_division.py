"""Division of every kind."""

from fractions import Fraction
from math import floor, trunc

import numpy as np
import pytest

from allotment.errors import InvalidArgumentError, NotFoundError
from allotment.tf import math as tf_math
from allotment.tf.ops.math.division import realdiv, truncatediv, truncatemod
from support.tf.tensors import check, check_refused, tensor

PAIRS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, -5), (1, 100), (-1, 100)]
X, Y = map(list, zip(*PAIRS, strict=True))
FLOORS = [floor(Fraction(x, y)) for x, y in PAIRS]
CUTS = [trunc(Fraction(x, y)) for x, y in PAIRS]
SIGNED = ["int8", "int16", "int32", "int64"]
FLOATS = ["float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", SIGNED + FLOATS)
def test_rounding_towards_minus_infinity(dtype: str) -> None:
    x, y = tensor(X, dtype), tensor(Y, dtype)
    check(tf_math.floordiv(x, y), FLOORS, dtype)
    check(tf_math.floormod(x, y), [x - q * y for (x, y), q in zip(PAIRS, FLOORS, strict=True)], dtype)


@pytest.mark.parametrize("dtype", SIGNED + FLOATS)
def test_rounding_towards_zero(dtype: str) -> None:
    x, y = tensor(X, dtype), tensor(Y, dtype)
    check(truncatediv(x, y), CUTS, dtype)
    if dtype in ("int32", "int64", "float32", "float64"):  # other types have no kernel
        check(truncatemod(x, y), [x - q * y for (x, y), q in zip(PAIRS, CUTS, strict=True)], dtype)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_unsigned_integers(dtype: str) -> None:
    x, y = tensor([7, 200, 5], dtype), tensor([2, 3, 9], dtype)
    for divide in (tf_math.floordiv, truncatediv):
        check(divide(x, y), [3, 66, 0], dtype)
    check(tf_math.floormod(x, y), [1, 2, 5], dtype)
    with pytest.raises(InvalidArgumentError, match="not in the list of allowed values: int32, int64"):
        truncatemod(x, y)


@pytest.mark.parametrize(
    "divide", [tf_math.floordiv, tf_math.floormod, tf_math.mod, truncatediv, truncatemod]
)
def test_integers_are_not_divided_by_zero(divide: object) -> None:
    assert callable(divide)
    for dtype in ("int32", "int64"):
        check_refused(
            divide, tensor([1, 2], dtype), tensor([1, 0], dtype), text="Integer division by zero [Op:"
        )
    check_refused(divide, tensor(1), 0, text="Integer division by zero")
    with pytest.raises(InvalidArgumentError, match="Incompatible shapes"):
        divide(tensor([1, 2]), tensor([1, 2, 3]))


def test_the_smallest_integer_divided_by_minus_one_wraps_around() -> None:
    for divide in (tf_math.floordiv, truncatediv):
        check(divide(tensor([-128], "int8"), tensor([-1], "int8")), [-128], "int8")


def test_floats_are_divided_by_zero() -> None:
    x, zero = tensor([1.0, -1.0, 0.0]), tensor([0.0, 0.0, 0.0])
    check(tf_math.divide(x, zero), [np.inf, -np.inf, np.nan], "float32")
    check(tf_math.floordiv(x, zero), [np.inf, -np.inf, np.nan], "float32")
    check(tf_math.floormod(x, zero), [np.nan, np.nan, np.nan], "float32")


def test_a_float_quotient_is_rounded_before_its_floor_is_taken() -> None:
    # As TensorFlow does it; Python says 9.
    check(tf_math.floordiv(tensor(1.0, "float64"), tensor(0.1, "float64")), 10, "float64")


def test_integers_become_floats() -> None:
    for dtype in ("int8", "int16", "uint8", "uint16"):
        check(tf_math.truediv(tensor([1, 3], dtype), tensor([2, 2], dtype)), [0.5, 1.5], "float32")
    for dtype in ("int32", "int64", "uint32", "uint64"):
        check(tf_math.divide(tensor([1, 3], dtype), 2), [0.5, 1.5], "float64")
    check(tf_math.divide(1, 4), 0.25, "float64")
    check(tf_math.divide(1.0, 4), 0.25, "float32")
    check(tf_math.divide(tensor([1j]), 2), [0.5j], "complex128")
    check(tf_math.truediv(tensor([1.0], "float16"), 2), [0.5], "float16")


def test_division_of_different_types_is_a_type_error() -> None:
    for divide in (tf_math.truediv, tf_math.divide, tf_math.divide_no_nan):
        with pytest.raises(
            TypeError, match=r"`x` and `y` must have the same dtype, got tf.int32 != tf.float32"
        ):
            divide(tensor(1), tensor(1.0))


def test_real_division_takes_no_integers() -> None:
    check(realdiv(tensor([1.0]), tensor([2.0])), [0.5], "float32")
    with pytest.raises(NotFoundError, match=r"T=DT_INT32.*\n(.*\n)*.*\[Op:RealDiv]"):
        realdiv(tensor([1]), tensor([2]))


def test_nothing_instead_of_a_division_by_zero() -> None:
    x, y = tensor([1.0, 0.0, 3.0, np.nan]), tensor([0.0, 0.0, 2.0, 0.0])
    check(tf_math.divide_no_nan(x, y), [0, 0, 1.5, 0], "float32")
    check(tf_math.divide_no_nan(tensor([1, 3]), tensor([0, 2])), [0, 1.5], "float64")
    check(tf_math.divide_no_nan(3.0, tensor(0.0)), 0, "float32")


def test_complex_numbers_have_no_floor() -> None:
    with pytest.raises(NotFoundError, match="T=DT_COMPLEX128"):
        tf_math.floordiv(tensor([5 + 3j]), tensor([2 + 0j]))
