"""Running sums and products, and where the extremes are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment.tf import math as tf_math
from support.tf.tensors import check, check_refused, tensor

ALL = [
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


@pytest.mark.parametrize("dtype", [*ALL, "complex64", "complex128"])
def test_running_sums_and_products(dtype: str) -> None:
    x = tensor([1, 2, 3], dtype)
    check(tf_math.cumsum(x), [1, 3, 6], dtype)
    check(tf_math.cumsum(x, exclusive=True), [0, 1, 3], dtype)
    check(tf_math.cumsum(x, reverse=True), [6, 5, 3], dtype)
    check(tf_math.cumsum(x, exclusive=True, reverse=True), [5, 3, 0], dtype)
    check(tf_math.cumprod(x), [1, 2, 6], dtype)
    check(tf_math.cumprod(x, exclusive=True), [1, 1, 2], dtype)
    check(tf_math.cumprod(x, reverse=True), [6, 6, 3], dtype)
    check(tf_math.cumprod(x, exclusive=True, reverse=True), [6, 3, 1], dtype)


def test_along_an_axis() -> None:
    x = tensor([[1, 2], [3, 4]])
    check(tf_math.cumsum(x, 0), [[1, 2], [4, 6]], "int32")
    check(tf_math.cumsum(x, -1), [[1, 3], [3, 7]], "int32")
    check(tf_math.cumsum(x, tensor(1), exclusive=True), [[0, 1], [0, 3]], "int32")
    check(tf_math.cumprod(x, axis=1, reverse=True), [[2, 2], [12, 4]], "int32")
    check(tf_math.cumsum(tensor(np.zeros((2, 0))), 1, exclusive=True), np.zeros((2, 0)), "float64")


@pytest.mark.parametrize("scan", [tf_math.cumsum, tf_math.cumprod])
def test_axes_that_are_not_there(scan: Callable[..., Any]) -> None:
    check_refused(scan, tensor([1.0]), 1, text="ScanOp: Expected scan axis in the range [-1, 1), but got 1")
    check_refused(scan, tensor(1.0), text="ScanOp: Expected scan axis in the range [0, 0), but got 0")
    with pytest.raises(ValueError, match="axis must be one whole number, not None"):
        scan(tensor([1.0]), None)


@pytest.mark.parametrize("dtype", ALL)
def test_positions_of_extremes(dtype: str) -> None:
    x = tensor([[1, 9, 3], [4, 2, 6]], dtype)
    check(tf_math.argmax(x), [1, 0, 1], "int64")
    check(tf_math.argmax(x, 1), [1, 2], "int64")
    check(tf_math.argmin(x, axis=-1), [0, 1], "int64")
    check(tf_math.argmin(x, 0, "int32"), [0, 1, 0], "int32")


def test_the_first_of_equal_ones_is_found() -> None:
    check(tf_math.argmax(tensor([3, 1, 3])), 0, "int64")
    check(tf_math.argmin(tensor([True, False, False])), 1, "int64")


@pytest.mark.parametrize("find", [tf_math.argmax, tf_math.argmin])
def test_positions_that_are_not_there(find: Callable[..., Any]) -> None:
    x = tensor([[1.0, 2.0]])
    check_refused(find, x, 2, text="Expected dimension in the range [-2, 2), but got 2")
    check_refused(find, tensor(1.0), text="Expected dimension in the range [0, 0), but got 0")
    check_refused(find, tensor(np.zeros((0, 3))), 0, text="Reduction axis 0 is empty in shape [0,3]")
    check_refused(find, tensor([1j]), text="[Op:Arg")
    check_refused(find, x, tensor([0], "int32"), text="axis must be a scalar")
    check_refused(find, x, output_type="float32", text="Value for attr 'output_type' of float")


def test_axes_of_positions_that_are_no_whole_number() -> None:
    # Of another class, as TensorFlow's: the one function looks at the axis, the other leaves it to the operation.
    x = tensor([[1.0, 2.0]])
    for axis in ([0], 1.0, "0"):
        with pytest.raises(TypeError, match="axis must be int or Tensor with integer datatype"):
            tf_math.argmax(x, axis)
    check_refused(tf_math.argmin, x, [0], text="axis must be a scalar")
