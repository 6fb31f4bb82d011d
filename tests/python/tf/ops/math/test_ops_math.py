"""Arithmetic, element by element."""

import numpy as np
import pytest

from allotment.errors import InvalidArgumentError, NotFoundError
from allotment.tf import math as tf_math
from allotment.tf.ops.math.arithmetic import clip_by_value
from support.tf.tensors import check, check_refused, tensor

FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
SIGNED = ["int8", "int16", "int32", "int64"]
INTEGERS = [*SIGNED, "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX + INTEGERS)
def test_sums_differences_and_products_keep_the_type(dtype: str) -> None:
    x, y = tensor([6, 8, 10], dtype), tensor([1, 2, 3], dtype)
    check(tf_math.add(x, y), [7, 10, 13], dtype)
    check(tf_math.subtract(x, y), [5, 6, 7], dtype)
    check(tf_math.multiply(x, y), [6, 16, 30], dtype)
    check(tf_math.square(y), [1, 4, 9], dtype)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_extremes_keep_the_type(dtype: str) -> None:
    check(tf_math.maximum(tensor([1, 5], dtype), tensor([3, 2], dtype)), [3, 5], dtype)
    check(tf_math.minimum(tensor([1, 5], dtype), tensor([3, 2], dtype)), [1, 2], dtype)


def test_shapes_are_broadcast() -> None:
    x, y = tensor([[1.0], [2.0]]), tensor([10.0, 20.0, 30.0])
    check(tf_math.add(x, y), [[11, 21, 31], [12, 22, 32]], "float32")
    check(tf_math.multiply(tensor(2.0), tensor(3.0)), 6, "float32")
    check(tf_math.add(tensor(np.zeros((0, 3), np.float32)), y), np.zeros((0, 3)), "float32")


def test_python_numbers_take_the_type_of_the_tensor_beside_them() -> None:
    for dtype in FLOATS:
        check(tf_math.multiply(tensor([1.5], dtype), 2), [3], dtype)
        check(tf_math.subtract(1, tensor([0.25], dtype)), [0.75], dtype)
    check(tf_math.add(tensor([1], "int64"), 2), [3], "int64")
    check(tf_math.add(1, 2), 3, "int32")
    check(tf_math.add(1.5, 2.0), 3.5, "float32")


def test_integers_wrap_around() -> None:
    check(tf_math.add(tensor([127], "int8"), tensor([1], "int8")), [-128], "int8")
    check(tf_math.multiply(tensor([2**31 - 1]), tensor([2])), [-2], "int32")
    check(tf_math.pow(tensor([2]), tensor([31])), [-(2**31)], "int32")


def test_texts_are_joined_by_an_operation_of_another_name() -> None:
    assert tf_math.add(tensor(["a", "b"]), tensor("c")).numpy().tolist() == [b"ac", b"bc"]
    assert tf_math.add("a", "b").numpy() == b"ab"
    with pytest.raises(InvalidArgumentError, match=r"\[Op:Add\] name: $"):
        tf_math.add(tensor(["a", "b"]), tensor(["a", "b", "c"]))


def test_what_does_not_go_together_is_said_in_tensorflows_words() -> None:
    check_refused(
        tf_math.add,
        tensor(1),
        tensor(1.0),
        text="cannot compute AddV2 as input #1(zero-based) was expected to be a int32 tensor but is a float tensor "
        "[Op:AddV2] name: ",
    )
    check_refused(
        tf_math.add, tensor([1.0, 2.0]), tensor([1.0, 2.0, 3.0]), text="Incompatible shapes: [2] vs. [3]"
    )
    check_refused(tf_math.add, tensor(True), tensor(True), text="[Op:AddV2]")
    check_refused(tf_math.subtract, tensor("a"), tensor("b"), text="[Op:Sub]")
    check_refused(tf_math.negative, tensor(1, "uint8"), text="[Op:Neg]")
    check_refused(tf_math.maximum, tensor(1j), tensor(1j), text="[Op:Maximum]")
    check_refused(
        tf_math.add, tensor([1.0, 2.0]), tensor([1.0, 2.0, 3.0]), name="mine", text="[Op:AddV2] name: mine"
    )


@pytest.mark.parametrize("dtype", FLOATS + SIGNED)
def test_signs(dtype: str) -> None:
    x = tensor([-3, 0, 2], dtype)
    check(tf_math.abs(x), [3, 0, 2], dtype)
    check(tf_math.negative(x), [3, 0, -2], dtype)
    check(tf_math.sign(x), [-1, 0, 1], dtype)


def test_signs_of_complex_numbers() -> None:
    check(tf_math.abs(tensor([3 + 4j, 0j], "complex64")), [5, 0], "float32")
    check(tf_math.abs(tensor([3 + 4j])), [5], "float64")
    check(tf_math.sign(tensor([3 + 4j, 0j])), [0.6 + 0.8j, 0], "complex128")


def test_the_largest_is_a_nan_if_one_is() -> None:
    nan = float("nan")
    check(tf_math.maximum(tensor([nan, 1.0]), tensor([1.0, nan])), [nan, nan], "float32")
    check(tf_math.minimum(tensor([nan, 1.0]), tensor([1.0, nan])), [nan, nan], "float32")


def test_powers() -> None:
    check(tf_math.pow(tensor([2.0, 9.0]), tensor([3.0, 0.5])), [8, 3], "float32")
    check(tf_math.pow(tensor([2.0, 4.0], "float16"), 2), [4, 16], "float16")
    check(tf_math.pow(tensor([[2], [3]]), tensor([0, 1, 2])), [[1, 2, 4], [1, 3, 9]], "int32")
    check(tf_math.pow(tensor([1j]), tensor([2 + 0j])), [-1], "complex128", atol=1e-15)
    check(tf_math.pow(tensor([-1.0]), tensor([0.5])), [np.nan], "float32")
    text = "Integers to negative integer powers are not allowed [Op:Pow]"
    check_refused(tf_math.pow, tensor([2, 3]), tensor([1, -1]), text=text)


def test_squared_differences() -> None:
    check(tf_math.squared_difference(tensor([1.0, 5.0]), tensor([4.0, 3.0])), [9, 4], "float32")
    check(tf_math.squared_difference(tensor([1, 5]), tensor(3)), [4, 4], "int32")
    check(tf_math.squared_difference(tensor([3 + 4j]), tensor([0j])), [25], "complex128")
    check(tf_math.squared_difference(tensor(2.0), tensor(5.0)), 9, "float32")


def test_a_zero_wins_over_infinity_and_nan() -> None:
    x, y = tensor([np.inf, np.nan, 2.0]), tensor([0.0, 0.0, 3.0])
    check(tf_math.multiply_no_nan(x, y), [0, 0, 6], "float32")
    assert np.isnan(tf_math.multiply_no_nan(tensor(0.0), tensor(np.nan)).numpy())


def test_reciprocals() -> None:
    check(tf_math.reciprocal(tensor([2.0, 0.0, -4.0])), [0.5, np.inf, -0.25], "float32")
    with pytest.raises(NotFoundError, match="T=DT_INT32"):
        tf_math.reciprocal(tensor([2]))


def test_clipping() -> None:
    x = tensor([-2.0, 0.5, 7.0])
    check(clip_by_value(x, 0.0, 1.0), [0, 0.5, 1], "float32")
    check(clip_by_value(x, tensor([-1.0, 1.0, 0.0]), 5.0), [-1, 1, 5], "float32")
    check(clip_by_value(tensor([1, 9]), 2, 3), [2, 3], "int32")
    with pytest.raises(ValueError, match=r"Shapes \(3,\) and \(2, 3\) are incompatible"):
        clip_by_value(x, tensor([[0.0], [0.0]]), 1.0)
    with pytest.raises(ValueError, match=r"Shapes \(3,\) and \(2, 3\) are incompatible"):
        clip_by_value(x, 0.0, tensor([[0.0], [0.0]]))
