"""Values into tensors: the element type that TensorFlow gives them, and its words for what it refuses."""

import re
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from support.tf.tensors import check

MIXED = "Can't convert Python sequence with mixed types to Tensor."
RAGGED = "Can't convert non-rectangular Python sequence to Tensor."
LARGE_INTEGER = "Can't convert Python sequence with out-of-range integer to Tensor."
LARGE_FLOAT = "Can't convert Python sequence with a value out of range for a double-precision float."
NONE = "Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor."


def one() -> Any:
    return tf.constant(1.0)


@pytest.mark.parametrize(
    ("value", "expected", "dtype"),
    [
        (3, 3, "int32"),
        (2**31 - 1, 2**31 - 1, "int32"),
        (2**31, 2**31, "int64"),
        (-(2**63), -(2**63), "int64"),
        ([1, 2**40], [1, 2**40], "int64"),
        ([1, 2.5], [1, 2.5], "float32"),
        ([1, True], [1, 1], "int32"),
        ([1.0, True], [1, 1], "float32"),
        ([2 + 1j, 1], [2 + 1j, 1], "complex128"),
        ([1.5, 2**70], [1.5, 2.0**70], "float32"),
        ([float("-inf"), float("nan")], [-np.inf, np.nan], "float32"),
        ([b"a", "b"], [b"a", b"b"], "string"),
        ([], [], "float32"),
        ([[], []], np.zeros((2, 0)), "float32"),
        ([[], [1]], np.zeros((2, 0)), "float32"),
        (range(3), [0, 1, 2], "int32"),
        ([range(2), (3, 4)], [[0, 1], [3, 4]], "int32"),
        ([np.float64(1.5), 2], [1.5, 2], "float64"),
        ([2, np.float64(1)], [2, 1], "float32"),
        ([np.float16(1), np.float32(1)], [1, 1], "float16"),
        ([np.int8(1), np.int64(1)], [1, 1], "int32"),
        ([np.int64(2**40)], [2**40], "int64"),
        ([np.complex64(1)], [1], "complex128"),
        ([np.zeros((2, 2))], np.zeros((1, 2, 2)), "float64"),
        ([np.zeros(2, np.int64), np.ones(2, np.int32)], [[0, 0], [1, 1]], "int32"),
        ([np.array([1]), np.array([2.5])], [[1], [2.5]], "float32"),
        ([np.array(1.5), 2], [1.5, 2], "float64"),
        (np.array([1, 2], ">i4"), [1, 2], "int32"),
        (np.array(["a", "é"]), [b"a", "é".encode()], "string"),
        (tf.TensorShape([1, 2]), [1, 2], "int32"),
    ],
)
def test_types_of_values(value: Any, expected: Any, dtype: str) -> None:
    check(tf.constant(value), expected, dtype)
    check(tf.convert_to_tensor(value), expected, dtype)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (True, "int32", 1),
        ([True, 2.5], "float32", [1, 2.5]),
        (True, "complex128", 1),
        (300, "uint8", 44),
        (-129, "int8", 127),
        (2**40, "int32", 0),
        ([2**40, 1], "int8", [0, 1]),
        (2**64 - 1, "uint64", 2**64 - 1),
        (2**70, "float32", 2.0**70),
        (1e40, "float32", np.inf),
        (1e40, "float16", np.inf),
        ([1, 2.5], "complex64", [1, 2.5]),
        ([], "string", []),
        (np.array([1.5, -1.5]), "uint8", [1, 255]),
        (np.array([300]), "uint8", [44]),
        (np.float64(1.5), "int32", 1),
        (np.array([2.5, 0]), "bool", [True, False]),
        (np.array([True]), "int32", [1]),
        (np.array([1 + 1j]), "float32", [1]),
        (np.array(["3"]), "int32", [3]),
    ],
)
def test_types_asked_for(value: Any, dtype: str, expected: Any) -> None:
    check(tf.constant(value, dtype), np.asarray(expected, None if dtype != "string" else object), dtype)
    check(tf.convert_to_tensor(value, dtype), expected, dtype)


@pytest.mark.parametrize(
    ("value", "dtype", "kind", "text"),
    [
        ([1, "a"], None, ValueError, MIXED),
        (["a", 1], "string", ValueError, MIXED),
        ([True, 1], None, ValueError, MIXED),
        ([True, 1.0], None, ValueError, MIXED),
        ([1, 2 + 1j], None, ValueError, MIXED),
        ([1, None], None, ValueError, MIXED),
        ([1, [2]], None, ValueError, MIXED),
        ([np.bool_(True), 1], None, ValueError, MIXED),
        ([[1], 2], None, ValueError, RAGGED),
        ([[1], [1, 2]], None, ValueError, RAGGED),
        ([np.zeros(2), np.zeros(3)], None, ValueError, RAGGED),
        (2**63, None, ValueError, LARGE_INTEGER),
        ([1, 2**63], "int32", ValueError, LARGE_INTEGER),
        (-1, "uint64", ValueError, LARGE_INTEGER),
        (1e40, None, ValueError, LARGE_FLOAT),
        ([1.0, -3.4028236e38], None, ValueError, LARGE_FLOAT),
        ([1.5, 2**2000], None, ValueError, LARGE_FLOAT),
        ([None], None, ValueError, NONE),
        (None, None, ValueError, NONE),
        ([{}], None, ValueError, "a value ({}) with an unsupported type (<class 'dict'>)"),
        (1.5, "int32", TypeError, "Cannot convert 1.5 to EagerTensor of dtype int32"),
        ([1, 2.5], "int32", TypeError, "Cannot convert [1, 2.5] to EagerTensor of dtype int32"),
        (1, "bool", TypeError, "Cannot convert 1 to EagerTensor of dtype bool"),
        (True, "uint8", TypeError, "Cannot convert True to EagerTensor of dtype uint8"),
        (1j, "float32", TypeError, "Cannot convert 1j to EagerTensor of dtype float"),
        ("x", "int32", TypeError, "Cannot convert 'x' to EagerTensor of dtype int32"),
        (1, "string", TypeError, "Cannot convert 1 to EagerTensor of dtype string"),
        (
            [np.float64(1.5)],
            "int32",
            TypeError,
            "Cannot convert [np.float64(1.5)] to EagerTensor of dtype int32",
        ),
        (np.array([1]), "string", ValueError, "(Unsupported object type int)"),
        (np.array(["x"]), "int32", ValueError, "invalid literal for int() with base 10"),
        (np.array([None]), None, ValueError, "(Unsupported object type NoneType)"),
        (np.datetime64("2020-01-01"), None, ValueError, "(Unsupported numpy type: NPY_DATETIME)"),
    ],
)
def test_values_that_are_refused(value: Any, dtype: str | None, kind: type[Exception], text: str) -> None:
    for call in (tf.constant, tf.convert_to_tensor):
        with pytest.raises(kind, match=re.escape(text)) as caught:
            call(value, dtype)
        assert type(caught.value) is kind


def test_lists_with_tensors_take_the_type_of_the_first() -> None:
    for value in ([one(), 2.0], [2.0, one()], [2, one()], [tf.Variable(2.0), 1], (one(), np.float64(2))):
        assert tf.convert_to_tensor(value).dtype == tf.float32
    check(tf.convert_to_tensor([[one()], [2.0]]), [[1], [2]], "float32")
    check(tf.convert_to_tensor([[1, 2], [3, tf.constant(4.0)]]), [[1, 2], [3, 4]], "float32")
    check(tf.convert_to_tensor([tf.constant([1.0, 2.0]), [3, 4]]), [[1, 2], [3, 4]], "float32")
    check(tf.convert_to_tensor([tf.constant(1), np.float64(2.5)]), [1, 2], "int32")
    check(tf.convert_to_tensor([tf.constant(1), True]), [1, 1], "int32")
    check(tf.convert_to_tensor([1, tf.constant(2.5)], tf.int32), [1, 2], "int32")
    check(tf.convert_to_tensor([one(), 2.0], dtype_hint=tf.float64), [1, 2], "float64")
    check(tf.reduce_sum([one(), 2]), 3, "float32")
    with pytest.raises(TypeError, match=re.escape("Cannot convert 2.0 to EagerTensor of dtype int32")):
        tf.convert_to_tensor([tf.constant(1), 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"compute Pack as input #1.*name: packed"):
        tf.convert_to_tensor([tf.constant(1), one()])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shapes of all inputs must match"):
        tf.convert_to_tensor([tf.constant([1.0]), [2.0, 3.0]])


def test_constants_are_not_made_of_tensors_in_lists() -> None:
    for value, text in (
        ([one(), 2.0], "TypeError: Scalar tensor has no `len()`"),
        ([2.0, one()], MIXED),
        ([tf.Variable(1.0)], "TypeError: object of type 'ResourceVariable' has no len()"),
    ):
        with pytest.raises(ValueError, match=re.escape(text)) as caught:
            tf.constant(value)
        assert type(caught.value) is ValueError


def test_constants_of_tensors_keep_the_type() -> None:
    x = tf.constant([1.0, 2.0])
    assert tf.constant(x, tf.float32) is x
    text = "Expected tensor [1. 2.] with dtype tf.float64, but got dtype tf.float32."
    with pytest.raises(TypeError, match=re.escape(text)):
        tf.constant(x, dtype=tf.float64)
    check(tf.constant(tf.Variable([1.0]), tf.float64), [1], "float64")
    with pytest.raises(
        ValueError, match=re.escape("requested to type float64 for `tf.Variable of type float32")
    ):
        tf.convert_to_tensor(tf.Variable(1.0), tf.float64)


def test_hints_are_followed_if_they_can_be() -> None:
    check(tf.convert_to_tensor(1, dtype_hint=tf.float32), 1, "float32")
    check(tf.convert_to_tensor(1.5, dtype_hint=tf.int32), 1.5, "float32")
    check(tf.convert_to_tensor("a", dtype_hint=tf.int32), b"a", "string")
    check(tf.convert_to_tensor(np.zeros(2), dtype_hint=tf.int32), [0, 0], "int32")
    check(tf.convert_to_tensor(one(), dtype_hint=tf.int32), 1, "float32")


def test_shapes_become_tensors_of_lengths() -> None:
    check(tf.convert_to_tensor(tf.TensorShape([2]), tf.int64), [2], "int64")
    check(tf.convert_to_tensor(tf.TensorShape([2**40])), [2**40], "int64")
    for shape, dtype, kind, text in (
        ([1, 2], tf.float32, TypeError, "Cannot convert TensorShape (1, 2) to dtype <dtype: 'float32'>."),
        ([1, None], None, ValueError, "Cannot convert a partially known TensorShape (1, None) to a Tensor."),
        (None, None, ValueError, "Cannot convert a partially known TensorShape <unknown> to a Tensor."),
        ([2**40], tf.int32, ValueError, "a dimension is too large. Consider using tf.int64."),
    ):
        with pytest.raises(kind, match=re.escape(text)):
            tf.convert_to_tensor(tf.TensorShape(shape), dtype)


def test_filling_takes_a_layout() -> None:
    check(tf.zeros([2], layout=None), [0, 0], "float32")
    check(tf.ones([2], tf.bool, None, None), [True, True], "bool")
    check(tf.fill([2], 1, layout=None), [1, 1], "int32")
    with pytest.raises(TypeError, match="Cannot convert 1 to EagerTensor of dtype string"):
        tf.ones([2], tf.string)


@pytest.mark.parametrize(
    "shape", [[2, 3], (2, 3), range(2, 4), np.array([2, 3], np.int8), tf.TensorShape([2, 3])]
)
def test_shapes_come_in_many_forms(shape: Any) -> None:
    x = tf.zeros([6])
    variable = tf.Variable([2, 3])
    for given in (shape, tf.constant([2, 3]), variable, [tf.Variable(2), 3], [np.int64(2), tf.constant(3)]):
        assert tf.reshape(x, given).shape == tf.zeros(given).shape == tf.fill(given, 1.0).shape == (2, 3)


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        (None, ValueError),
        ([None, 3], ValueError),
        (object(), ValueError),
        (1.5, TypeError),
        ([2.0, 3.0], tf.errors.InvalidArgumentError),
        ("a", tf.errors.InvalidArgumentError),
        ([[2, 3]], tf.errors.InvalidArgumentError),
        (tf.constant([2, 3], tf.int16), tf.errors.InvalidArgumentError),
    ],
)
def test_what_is_no_shape_is_refused_as_a_tensor_of_it_would_be(shape: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="a shape must be whole numbers, not"):
        tf.reshape(tf.zeros([6]), shape)


def test_objects_that_make_their_own_tensor() -> None:
    class Five:
        def __tf_tensor__(self, dtype: Any = None, name: Any = None) -> Any:
            return tf.constant([5.0], dtype)

    check(tf.convert_to_tensor(Five()), [5.0], "float32")
    check(tf.convert_to_tensor(Five(), tf.float64), [5.0], "float64")
    check(tf.constant([1.0]) + Five(), [6.0], "float32")
    with pytest.raises(TypeError):
        tf.convert_to_tensor(Five(), tf.string)
