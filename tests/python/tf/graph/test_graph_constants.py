"""Constants of graphs: NumPy finds the element type of a value, as in TensorFlow."""

from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.tf.compat import v1


def value_of(make: Any) -> Any:
    with tf.Graph().as_default():
        made = make()
        with v1.Session() as session:
            return made.dtype.name, np.asarray(session.run(made)).tolist()


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([True, 2], None, ("int32", [1, 2])),
        ([1, 2j], None, ("complex128", [1, 2j])),
        (2**63, None, ("uint64", 2**63)),
        (3000000000, None, ("int64", 3000000000)),
        ([np.float64(1), 2], None, ("float32", [1.0, 2.0])),
        ([np.int8(1)], None, ("int8", [1])),
        (1e40, None, ("float32", float("inf"))),
        ([], None, ("float32", [])),
        (["a\0", b"b"], None, ("string", [b"a\0", b"b"])),
        (bytearray(b"ab"), None, ("uint8", [97, 98])),
        (True, tf.uint8, ("uint8", 1)),
        (300, tf.int8, ("int8", 44)),
        (-1, tf.uint64, ("uint64", 2**64 - 1)),
        (1e40, tf.float16, ("float16", float("inf"))),
        (np.arange(2), tf.float32, ("float32", [0.0, 1.0])),
    ],
)
def test_a_value_has_the_type_of_its_elements_or_the_one_that_is_asked_for(
    value: Any, dtype: Any, expected: Any
) -> None:
    assert value_of(lambda: tf.constant(value, dtype)) == expected


@pytest.mark.parametrize(
    ("value", "dtype", "error"),
    [
        (None, None, ValueError),
        ([None], None, TypeError),
        (object(), None, TypeError),
        ({1: 2}, tf.int32, TypeError),
        ([1, "a"], None, TypeError),
        ([1, "a"], tf.string, TypeError),
        (1.5, tf.int32, TypeError),
        ([[1], [2, 3]], None, ValueError),
        ([[1], [2, 3]], tf.string, TypeError),
        (range(3), None, ValueError),
        (np.arange(2), tf.string, TypeError),
        (np.datetime64("2020-01-01"), None, TypeError),
        (2**64, None, TypeError),
    ],
)
def test_what_has_no_constant_is_refused(value: Any, dtype: Any, error: type[Exception]) -> None:
    with tf.Graph().as_default(), pytest.raises(error):
        tf.constant(value, dtype)


def test_a_tensor_inside_of_a_constant_is_refused() -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError, match="got a tensor instead"):
        tf.constant([tf.constant(1), 2])


def test_shapes() -> None:
    assert value_of(lambda: tf.constant(7, shape=[2])) == ("int32", [7, 7])
    assert value_of(lambda: tf.constant([True, 2], tf.uint16, shape=[0])) == ("uint16", [])
    assert value_of(lambda: v1.constant([1, 2], shape=[3])) == ("int32", [1, 2, 2])
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="Expected Tensor's shape"):
            tf.constant([1, 2], shape=[3])
        with pytest.raises(ValueError, match="Too many elements"):
            v1.constant([1, 2], shape=[1])
        with pytest.raises(ValueError, match="Dimension -1"):
            tf.constant(1, shape=[-1])


def test_a_range_becomes_an_operation() -> None:
    assert value_of(lambda: tf.convert_to_tensor(range(3), tf.float32)) == ("float32", [0.0, 1.0, 2.0])
    with tf.Graph().as_default(), pytest.raises(TypeError):
        tf.convert_to_tensor(range(3), tf.uint8)


def test_the_first_operand_is_converted_first() -> None:
    with tf.Graph().as_default():
        x = tf.constant([1.0], tf.float64)
        assert (2 * x).dtype is tf.float64
        with pytest.raises(TypeError, match="does not match type int32"):
            tf.multiply(2, x)


def test_shapes_that_are_none() -> None:
    with tf.Graph().as_default():
        for elements in ([1.5], "a", [2, None]):
            with pytest.raises(TypeError):
                tf.fill(elements, 1)
        for whole in ([[2]], 3):
            with pytest.raises(ValueError, match=r"not \[\[2\]\]|rank 0"):
                tf.fill(whole, 1)


def test_a_cast_of_texts_fails_where_it_runs() -> None:
    with tf.Graph().as_default():
        made = tf.cast(tf.constant([1.0]), tf.string)
        assert made.dtype is tf.string
        with (
            v1.Session() as session,
            pytest.raises(tf.errors.UnimplementedError, match="Cast float to string"),
        ):
            session.run(made)
