"""Comparison, truth values and bits."""

import numpy as np
import pytest

from allotment.tf import bitwise
from allotment.tf import math as tf_math
from support.tf.tensors import check, check_refused, tensor

ORDERED = [
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
NAN = float("nan")


@pytest.mark.parametrize("dtype", ORDERED)
def test_order(dtype: str) -> None:
    x, y = tensor([1, 2, 3], dtype), tensor([2, 2, 2], dtype)
    check(tf_math.less(x, y), [True, False, False], "bool")
    check(tf_math.less_equal(x, y), [True, True, False], "bool")
    check(tf_math.greater(x, y), [False, False, True], "bool")
    check(tf_math.greater_equal(x, y), [False, True, True], "bool")
    check(tf_math.equal(x, y), [False, True, False], "bool")
    check(tf_math.not_equal(x, y), [True, False, True], "bool")


def test_what_has_no_order_can_be_equal() -> None:
    check(tf_math.equal(tensor(["a", "b"]), tensor("a")), [True, False], "bool")
    check(tf_math.not_equal(tensor(["a", "b"]), tensor("a")), [False, True], "bool")
    check(tf_math.equal(tensor([1j, 2]), tensor([1j, 1j])), [True, False], "bool")
    check(tf_math.equal(tensor([True, False]), tensor([True, True])), [True, False], "bool")
    for no_order in (tensor(1j), tensor(True), tensor("a")):
        check_refused(tf_math.less, no_order, no_order, text="[Op:Less]")


def test_a_nan_is_equal_to_nothing() -> None:
    check(tf_math.equal(tensor([NAN]), tensor([NAN])), [False], "bool")
    check(tf_math.not_equal(tensor([NAN]), tensor([NAN])), [True], "bool")


def test_scalars_and_broadcasting() -> None:
    check(tf_math.less(tensor(1.0), 2.0), True, "bool")
    check(tf_math.greater(tensor([[1], [3]]), tensor([0, 2])), [[True, False], [True, True]], "bool")
    check_refused(
        tf_math.equal, tensor([1, 2]), tensor([1, 2, 3]), text="Incompatible shapes: [2] vs. [3] [Op:Equal]"
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_kinds_of_floats(dtype: str) -> None:
    x = tensor([1.0, np.inf, -np.inf, NAN], dtype)
    check(tf_math.is_nan(x), [False, False, False, True], "bool")
    check(tf_math.is_inf(x), [False, True, True, False], "bool")
    check(tf_math.is_finite(x), [True, False, False, False], "bool")
    check_refused(tf_math.is_nan, tensor(1), text="[Op:IsNan]")


def test_truth_tables() -> None:
    x, y = tensor([False, False, True, True]), tensor([False, True, False, True])
    check(tf_math.logical_and(x, y), [False, False, False, True], "bool")
    check(tf_math.logical_or(x, y), [False, True, True, True], "bool")
    check(tf_math.logical_xor(x, y), [False, True, True, False], "bool")
    check(tf_math.logical_not(x), [True, True, False, False], "bool")
    check(tf_math.logical_and(True, [True, False]), [True, False], "bool")


def test_only_truth_values_are_true() -> None:
    check_refused(
        tf_math.logical_and,
        tensor([True]),
        tensor([1.0]),
        text="cannot compute LogicalAnd as input #1(zero-based) was expected to be a bool tensor but is a float tensor "
        "[Op:LogicalAnd] name: ",
    )
    check_refused(tf_math.logical_not, tensor([1]), text="cannot compute LogicalNot as input #0(zero-based)")


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_bits(dtype: str) -> None:
    x, y = tensor([0b1100, 5], dtype), tensor([0b1010, 3], dtype)
    check(bitwise.bitwise_and(x, y), [0b1000, 1], dtype)
    check(bitwise.bitwise_or(x, y), [0b1110, 7], dtype)
    check(bitwise.bitwise_xor(x, y), [0b0110, 6], dtype)
    check(bitwise.left_shift(x, tensor([1, 2], dtype)), [24, 20], dtype)
    check(bitwise.right_shift(x, tensor([1, 2], dtype)), [6, 1], dtype)


def test_inverted_bits_and_signs() -> None:
    check(bitwise.invert(tensor([0, 1, -1], "int8")), [-1, -2, 0], "int8")
    check(bitwise.invert(tensor([0, 1], "uint8")), [255, 254], "uint8")
    check(bitwise.right_shift(tensor([-8]), tensor([1])), [-4], "int32")
    check_refused(bitwise.bitwise_and, tensor([1.0]), tensor([1.0]), text="[Op:BitwiseAnd]")


def test_a_distance_beyond_the_width_is_cut_to_it() -> None:
    distances = tensor([-1, 40])
    check(bitwise.left_shift(tensor([1, 1]), distances), [1, -(2**31)], "int32")
    check(bitwise.right_shift(tensor([-5, -5]), distances), [-5, -1], "int32")
