"""Reductions over axes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.tf import math as tf_math
from support.tf.tensors import check, check_refused, tensor

FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]
CUBE = [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]

#: Axes, and what the sums over them are: counted out by hand.
SUMS: list[tuple[Any, Any]] = [
    (None, 78),
    (0, [[8, 10], [12, 14], [16, 18]]),
    (1, [[9, 12], [27, 30]]),
    (2, [[3, 7, 11], [15, 19, 23]]),
    (-1, [[3, 7, 11], [15, 19, 23]]),
    ([0, 1], [36, 42]),
    ((-1, 0), [18, 26, 34]),
    ([], CUBE),
]


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + COMPLEX)
@pytest.mark.parametrize(("axis", "expected"), SUMS)
def test_sums(dtype: str, axis: Any, expected: Any) -> None:
    check(tf_math.reduce_sum(tensor(CUBE, dtype), axis), expected, dtype)


@pytest.mark.parametrize("axis", [1, [1], np.array(1), np.array([1]), tensor(1), tensor([1], "int64"), (-2,)])
def test_an_axis_is_given_in_any_form(axis: Any) -> None:
    check(tf_math.reduce_sum(tensor(CUBE), axis), [[9, 12], [27, 30]], "int32")
    check(tf_math.reduce_max(tensor(CUBE), axis), [[5, 6], [11, 12]], "int32")


def test_axes_stay_if_asked() -> None:
    x = tensor(CUBE)
    check(tf_math.reduce_sum(x, 1, True), [[[9, 12]], [[27, 30]]], "int32")
    check(tf_math.reduce_max(x, keepdims=True), [[[12]]], "int32")
    check(tf_math.reduce_mean(x, [0, 2], keepdims=True), [[[4], [6], [8]]], "int32")
    check(tf_math.reduce_any(tensor([[True], [False]]), 0, keepdims=True), [[True]], "bool")


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_products_and_extremes(dtype: str) -> None:
    x = tensor([[1, 2, 3], [4, 5, 1]], dtype)
    check(tf_math.reduce_prod(x), 120, dtype)
    check(tf_math.reduce_prod(x, 0), [4, 10, 3], dtype)
    check(tf_math.reduce_max(x, 1), [3, 5], dtype)
    check(tf_math.reduce_min(x, 0), [1, 2, 1], dtype)
    check(tf_math.reduce_max(x), 5, dtype)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_means_of_floats(dtype: str) -> None:
    check(tf_math.reduce_mean(tensor([[1, 2], [3, 5]], dtype)), 2.75, dtype)
    check(tf_math.reduce_mean(tensor([[1, 2], [3, 5]], dtype), 0), [2, 3.5], dtype)


def test_means_of_integers_are_cut_towards_zero() -> None:
    check(tf_math.reduce_mean(tensor([1, 0, 1, 0])), 0, "int32")
    check(tf_math.reduce_mean(tensor([-1, -2, -4])), -2, "int32")
    check(tf_math.reduce_mean(tensor([[7, 8], [4, 1]], "uint8"), 1), [7, 2], "uint8")


@pytest.mark.parametrize(
    ("values", "mean", "dtype"),
    [
        ([2_000_000_000, 2_000_000_000], 2_000_000_000, "int32"),
        (range(100_000), 49_999, "int32"),
        ([200] * 300, 200, "uint8"),
        ([1] * 128, 1, "int8"),
        ([-128] * 300, -128, "int8"),
        ([2**32 - 1] * 3, 2**32 - 1, "uint32"),
        ([2**62] * 3, -(2**62 // 3), "int64"),
    ],
)
def test_sums_of_integer_means_are_64_bits_wide(values: Any, mean: int, dtype: str) -> None:
    x = tensor(list(values), dtype)
    check(tf_math.reduce_mean(x), mean, dtype)
    check(tf_math.reduce_mean(tensor([[each] for each in values], dtype), 0, keepdims=True), [[mean]], dtype)


def test_sums_of_small_integers_wrap_around() -> None:
    check(tf_math.reduce_sum(tensor([100, 100], "int8")), -56, "int8")
    check(tf_math.reduce_prod(tensor([2] * 32)), 0, "int32")


def test_halves_are_added_up_in_single_precision() -> None:
    many = tensor(np.full((4096, 2), 1, np.float16))
    # In halves the sum would stop at 2048.
    check(tf_math.reduce_sum(many, 0), [4096, 4096], "float16")
    # The sum itself is beyond the halves.
    check(tf_math.reduce_mean(tensor(np.full(100, 60000, np.float16))), 60000, "float16")


def test_nothing_to_reduce() -> None:
    empty = tensor(np.zeros((0, 2), np.float32))
    check(tf_math.reduce_sum(empty, 0), [0, 0], "float32")
    check(tf_math.reduce_prod(empty, 0), [1, 1], "float32")
    check(tf_math.reduce_max(empty, 0), [-np.inf, -np.inf], "float32")
    check(tf_math.reduce_min(empty, 0), [np.inf, np.inf], "float32")
    check(tf_math.reduce_mean(empty, 0), [np.nan, np.nan], "float32")
    check(tf_math.reduce_sum(empty, 1), np.zeros(0), "float32")
    check(tf_math.reduce_max(tensor(np.zeros(0, np.int32))), -(2**31), "int32")
    check(tf_math.reduce_mean(tensor(np.zeros(0, np.int32))), 0, "int32")
    check(tf_math.reduce_all(tensor(np.zeros(0, np.bool_))), True, "bool")
    check(tf_math.reduce_any(tensor(np.zeros(0, np.bool_))), False, "bool")


def test_a_nan_is_the_largest_and_the_smallest() -> None:
    x = tensor([1.0, float("nan"), 3.0])
    assert np.isnan(tf_math.reduce_max(x).numpy())
    assert np.isnan(tf_math.reduce_min(x).numpy())


def test_truth() -> None:
    x = tensor([[True, False], [True, True]])
    check(tf_math.reduce_all(x), False, "bool")
    check(tf_math.reduce_all(x, 1), [False, True], "bool")
    check(tf_math.reduce_any(x, 0), [True, True], "bool")
    check(tf_math.reduce_any([False, False]), False, "bool")
    check_refused(
        tf_math.reduce_any,
        tensor([1.0]),
        text="cannot compute Any as input #0(zero-based) was expected to be a bool tensor but is a float tensor",
    )


def test_euclidean_norms() -> None:
    x = tensor([[3.0, 4.0], [6.0, 8.0]])
    check(tf_math.reduce_euclidean_norm(x, 1), [5, 10], "float32")
    check(tf_math.reduce_euclidean_norm(x, 1, keepdims=True), [[5], [10]], "float32")
    check(tf_math.reduce_euclidean_norm(tensor([3 + 4j])), 5, "complex128")
    check(tf_math.reduce_euclidean_norm(tensor([1, 1])), 1, "int32")
    # Squares and sums of integers have their type.
    check(tf_math.reduce_euclidean_norm(tensor([127] * 300, "int8")), 6, "int8")
    check(tf_math.reduce_euclidean_norm(tensor([46341])), -(2**31), "int32")


REDUCTIONS = [
    tf_math.reduce_sum,
    tf_math.reduce_mean,
    tf_math.reduce_prod,
    tf_math.reduce_max,
    tf_math.reduce_min,
    tf_math.reduce_euclidean_norm,
]


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_axes_that_are_not_there(reduce: Callable[..., Any]) -> None:
    x = tensor([[1.0, 2.0]])
    check_refused(reduce, x, 2, text="Invalid reduction dimension (2 for input with 2 dimension(s)")
    check_refused(reduce, x, [0, -3], text="Invalid reduction dimension (-3 for input with 2 dimension(s)")
    check_refused(
        reduce, x, [1, -1], text="Invalid reduction arguments: Axes contains duplicate dimension: 1"
    )
    check_refused(reduce, tensor(1.0), 0, text="Invalid reduction dimension (0 for input with 0 dimension(s)")
    text = "Value for attr 'Tidx' of float is not in the list of allowed values: int32, int64"
    for wrong in ([0, 1.5][1:], np.float32(1)):
        check_refused(reduce, x, wrong, text=text)
    check_refused(reduce, x, "rows", text="Value for attr 'Tidx' of string is not in the list")
    for kind, no_axis in ((TypeError, 1.5), (ValueError, [None]), (ValueError, object())):
        with pytest.raises(kind, match="axis must be None"):
            reduce(x, no_axis)
    assert reduce(x, tf.Variable(1)).shape == reduce(x, [[1]]).shape == (1,)


def test_types_that_cannot_be_reduced() -> None:
    check_refused(tf_math.reduce_sum, tensor([True]), text="[Op:Sum]")
    check_refused(tf_math.reduce_mean, tensor(["a"]), text="[Op:Mean]")
    check_refused(tf_math.reduce_max, tensor([1j]), text="[Op:Max]")


def test_a_reduction_over_no_axis_is_a_copy() -> None:
    x = tensor([1.0, 2.0])
    for reduce in REDUCTIONS[:5]:
        assert not np.shares_memory(reduce(x, [])._array, x._array)


@pytest.mark.parametrize("axis", [None, 0, [-1]])
def test_a_norm_of_halves_whose_squares_are_none_is_infinite(axis: Any) -> None:
    # As in TensorFlow, although the norm itself would be a half.
    found = tf_math.reduce_euclidean_norm(tensor([[300, 1], [1, 300]], "float16"), axis)
    assert np.isinf(np.asarray(found)).all()
    check(tf_math.reduce_euclidean_norm(tensor([[3, 3], [4, 4]], "float16"), 0), [5, 5], "float16")
