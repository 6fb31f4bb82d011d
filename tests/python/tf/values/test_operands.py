"""Operands that are no tensors: the type they take beside one, and the errors of those that cannot."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from support.tf.tensors import check, check_refused

INTEGERS = tf.constant([1, 2])
FLOATS = tf.constant([1.0, 2.0])
HALVES = np.array([1.5, 2.5])


@pytest.mark.parametrize(
    ("call", "expected", "dtype"),
    [
        (lambda: INTEGERS * HALVES, [1, 4], "int32"),
        (lambda: HALVES * INTEGERS, [1, 4], "int32"),
        (lambda: INTEGERS + np.float32(2.5), [3, 4], "int32"),
        (lambda: np.float32(2) - INTEGERS, [1, 0], "int32"),
        (lambda: INTEGERS // np.float32(2), [0, 1], "int32"),
        (lambda: INTEGERS / np.array([2.5, 2]), [0.5, 1], "float64"),
        (lambda: INTEGERS & np.float32(2), [0, 2], "int32"),
        (lambda: INTEGERS ^ np.int64(2), [3, 0], "int32"),
        (lambda: np.float32(2) == INTEGERS, [False, True], "bool"),
        (lambda: FLOATS + np.array([True, False]), [2, 2], "float32"),
        (lambda: FLOATS + np.array([1 + 1j, 2]), [2, 4], "float32"),
        (lambda: tf.constant([True, False]) & np.array([1.0, 0.0]), [True, False], "bool"),
        (lambda: tf.constant(["a"]) + np.array(["x"]), [b"ax"], "string"),
        (lambda: tf.constant([[1]]) @ np.array([[2.5]]), [[2]], "int32"),
        (lambda: np.array([[2.5]]) @ tf.constant([[1]]), [[2]], "int32"),
        (lambda: INTEGERS + True, [2, 3], "int32"),
        (lambda: True * FLOATS, [1, 2], "float32"),
        (lambda: FLOATS * [True], [1, 2], "float32"),
        (lambda: tf.constant([1, 2], tf.uint8) + 300, [45, 46], "uint8"),
        (lambda: INTEGERS * 2**40, [0, 0], "int32"),
        (lambda: INTEGERS[:1] + [], [], "int32"),  # noqa: RUF005 - an operand, not a list to put together
        (lambda: FLOATS + [tf.constant(1), 2], [2, 4], "float32"),  # noqa: RUF005 - the same
        (lambda: tf.add(tf.ones(2), np.ones(2)), [2, 2], "float32"),
        (lambda: tf.add(np.ones(2), [1, 2]), [2, 3], "float64"),
        (lambda: tf.add(1, np.array([2.5])), [3], "int32"),
        (lambda: tf.subtract(np.ones(2), tf.ones(2)), [0, 0], "float32"),
        (lambda: tf.maximum(np.float64(2.5), tf.constant(1)), 2, "int32"),
        (lambda: tf.divide(np.array([2.5, 2]), INTEGERS), [2, 1], "float64"),
        (lambda: tf.concat([np.array([2.5]), tf.constant([1])], 0), [2, 1], "int32"),
        (lambda: tf.einsum("i,i->", HALVES, FLOATS), 6.5, "float32"),
        (lambda: tf.subtract(2, tf.Variable(2.5)), -0.5, "float32"),
        (lambda: tf.Variable([1, 2]) + HALVES, [2, 4], "int32"),
        (lambda: tf.identity(tf.Variable([1, 2]).assign(HALVES)), [1, 2], "int32"),
        (lambda: tf.identity(tf.Variable([1, 2]).assign_add(HALVES)), [2, 4], "int32"),
    ],
)
def test_operands_take_the_type_beside_them(call: Callable[[], Any], expected: Any, dtype: str) -> None:
    check(call(), expected, dtype)


@pytest.mark.parametrize(
    ("call", "op", "wanted", "found"),
    [
        (lambda: INTEGERS + 2.5, "AddV2", "int32", "float"),
        (lambda: INTEGERS + 1j, "AddV2", "int32", "complex128"),
        (lambda: INTEGERS + "s", "AddV2", "int32", "string"),
        (lambda: INTEGERS + np.array(["x"]), "AddV2", "int32", "string"),
        (lambda: tf.constant(["a"]) + 2, "Add", "string", "int32"),
        (lambda: tf.Variable(2) + 2.5, "AddV2", "int32", "float"),
        (lambda: tf.add(1, 2.0), "AddV2", "int32", "float"),
        (lambda: tf.add(1, FLOATS), "AddV2", "int32", "float"),
        (lambda: tf.add(np.ones(2), tf.ones(2)), "AddV2", "double", "float"),
        (lambda: tf.add_n([1, 2.0]), "AddN", "int32", "float"),
        (lambda: tf.add_n([tf.ones(2), np.ones(2)]), "AddN", "float", "double"),
        (lambda: tf.matmul(np.eye(2), tf.ones([2, 2])), "MatMul", "double", "float"),
        (lambda: tf.matmul([[1]], [[2.5]]), "MatMul", "int32", "float"),
        (lambda: tf.tensordot(FLOATS, np.ones(2), 1), "MatMul", "float", "double"),
        (lambda: tf.linalg.matvec(tf.ones([2, 2]), np.ones(2)), "MatMul", "float", "double"),
    ],
)
def test_the_first_of_a_sum_or_product_decides(
    call: Callable[[], Any], op: str, wanted: str, found: str
) -> None:
    text = f"cannot compute {op} as input #1(zero-based) was expected to be a {wanted} tensor but is a {found} tensor"
    check_refused(call, text=f"{text} [Op:{op}] name: ")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: INTEGERS - 2.5, "Cannot convert 2.5 to EagerTensor of dtype int32"),
        (lambda: 2.5 + INTEGERS, "Cannot convert 2.5 to EagerTensor of dtype int32"),
        (lambda: INTEGERS == 2.5, "Cannot convert 2.5 to EagerTensor of dtype int32"),
        (lambda: INTEGERS * "s", "Cannot convert 's' to EagerTensor of dtype int32"),
        (lambda: "s" + INTEGERS, "Cannot convert 's' to EagerTensor of dtype int32"),
        (lambda: FLOATS * 1j, "Cannot convert 1j to EagerTensor of dtype float"),
        (lambda: tf.constant([True]) & 1, "Cannot convert 1 to EagerTensor of dtype bool"),
        (lambda: tf.subtract(1, 2.0), "Cannot convert 2.0 to EagerTensor of dtype int32"),
        (lambda: tf.subtract(np.int64(2), 1.5), "Cannot convert 1.5 to EagerTensor of dtype int64"),
        (
            lambda: tf.Variable([1, 2]).assign([3.0, 4.0]),
            "Cannot convert [3.0, 4.0] to EagerTensor of dtype int32",
        ),
        (lambda: INTEGERS / 2.5, "`x` and `y` must have the same dtype, got tf.int32 != tf.float32."),
        (lambda: tf.divide(1, 2.0), "`x` and `y` must have the same dtype, got tf.int32 != tf.float32."),
        (
            lambda: tf.math.truediv(1, FLOATS),
            "`x` and `y` must have the same dtype, got tf.int32 != tf.float32.",
        ),
    ],
)
def test_misfits_of_other_operations(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=re.escape(text)):
        call()
