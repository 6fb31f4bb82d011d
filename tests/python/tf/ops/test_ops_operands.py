"""What operations take as operands, and the class of the refusal: TensorFlow's, from trials with it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.errors import InvalidArgumentError, NotFoundError


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: tf.math.reciprocal_no_nan(tf.constant([2])), InvalidArgumentError),
        (lambda: tf.math.reciprocal_no_nan(tf.constant([True])), TypeError),
        (lambda: tf.math.multiply_no_nan(0, tf.constant([2.0])), ValueError),
        (lambda: tf.math.multiply_no_nan(tf.constant([2]), tf.constant([2.0])), ValueError),
        (lambda: tf.math.divide_no_nan(tf.constant([True]), True), TypeError),
        (lambda: tf.divide(tf.constant(["a"]), "b"), TypeError),
        (lambda: tf.math.erfcinv(tf.constant([1])), TypeError),
        (lambda: tf.math.erfcinv(tf.constant([0.5], tf.float16)), NotFoundError),
        (lambda: tf.nn.silu(tf.constant([1])), InvalidArgumentError),
        (lambda: tf.nn.leaky_relu(tf.constant([1.0]), tf.constant(0.1)), TypeError),
        (lambda: tf.complex(tf.constant([1.0]), [1]), TypeError),
        (lambda: tf.logical_and(tf.constant([1]), tf.constant([1])), InvalidArgumentError),
        (lambda: tf.logical_and(tf.constant([1]), [True]), ValueError),
        (lambda: tf.logical_and(tf.constant([1]), 2), TypeError),
        (lambda: tf.reduce_any(tf.constant([1]), [0]), ValueError),
        (lambda: tf.truncatemod(tf.constant([1.0], tf.float16), tf.constant([1])), NotFoundError),
        (lambda: tf.debugging.assert_positive(tf.constant([True])), TypeError),
        (lambda: tf.clip_by_norm(tf.constant([1]), 2), InvalidArgumentError),
        (lambda: tf.clip_by_norm([1.0, 2.0], [[1.0], [2.0]]), ValueError),
        (lambda: tf.math.reduce_variance(tf.constant([1]), 1), InvalidArgumentError),
        (lambda: tf.cumsum([1.0], [0]), InvalidArgumentError),
        (lambda: tf.zeros([1.5]), TypeError),
        (lambda: tf.eye([2]), TypeError),
        (lambda: tf.one_hot([1], [3]), InvalidArgumentError),
        (lambda: tf.sequence_mask(tf.constant([1], tf.uint8)), InvalidArgumentError),
        (lambda: tf.histogram_fixed_width([np.nan], [0.0, 1.0]), InvalidArgumentError),
        (lambda: tf.histogram_fixed_width_bins([1], [0, 5]), InvalidArgumentError),
        (lambda: tf.math.confusion_matrix([1, 2], [1, 2], weights=[1.0]), ValueError),
        (lambda: tf.norm(1.0, 2, [0, 1]), InvalidArgumentError),
    ],
)
def test_operands_are_refused_as_there(call: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: tf.math.divide_no_nan(2, tf.constant([4, 0], tf.int8)), [0.5, 0.0]),
        (lambda: tf.math.imag(tf.constant([True])), [False]),
        (lambda: tf.nn.leaky_relu([-1.0], None), [-0.2]),
        (lambda: tf.clip_by_norm([3.0, 4.0], -1.0), [0.0, 0.0]),
        (lambda: tf.fill([2], [7]), [7, 7]),
        (lambda: tf.range([1], 3), [1, 2]),
        (lambda: tf.one_hot([0], 2, off_value=3.0), [[1.0, 3.0]]),
        (lambda: tf.sequence_mask([1.5, 0.5]), [[True, True], [True, False]]),
        (lambda: tf.sequence_mask([1.5], 3), [[True, False, False]]),
        (lambda: tf.histogram_fixed_width_bins([0.5, -2.0], [1.0, -1.0]), [25, 99]),
        (lambda: tf.math.floordiv(np.zeros((0, 2), int), [0, 0]), np.zeros((0, 2))),
    ],
)
def test_operands_are_taken_as_there(call: Callable[[], Any], expected: Any) -> None:
    np.testing.assert_allclose(call().numpy(), expected, rtol=1e-6)


def test_remainders_of_zero_have_the_sign_of_the_dividend() -> None:
    made = tf.math.floormod([-0.0, -1.5, 1.5, -1.0, 1.0], [1.5, 0.5, -0.5, 3.0, -3.0]).numpy()
    np.testing.assert_array_equal(made, [-0.0, -0.0, 0.0, 2.0, -2.0])
    np.testing.assert_array_equal(np.signbit(made), [True, True, False, False, True])
