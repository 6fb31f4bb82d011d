"""Arguments of operations on arrays: what TensorFlow refuses, with its class of error, and what it takes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf

ONE_PLACE = tf.constant([1])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: tf.slice(tf.constant(3), [], []), tf.errors.InvalidArgumentError),
        (lambda: tf.strided_slice([3], 0, 1), tf.errors.InvalidArgumentError),
        (
            lambda: tf.strided_slice([[3]], [0, 0], [1, 1], [-1, 1], shrink_axis_mask=1),
            tf.errors.InvalidArgumentError,
        ),
        (lambda: tf.strided_slice([[3]], [0], [1, 1]), tf.errors.InvalidArgumentError),
        (lambda: tf.transpose([3], 0), tf.errors.InvalidArgumentError),
        (lambda: tf.transpose([3], 0.5), TypeError),
        (lambda: tf.roll([1, 2], 1.5, 0), tf.errors.InvalidArgumentError),
        (lambda: tf.reduce_sum(tf.constant([1.0]), 1.5), TypeError),
        (lambda: tf.gather([1], [0], axis=0.5), tf.errors.InvalidArgumentError),
        (lambda: tf.pad([1], [[1.5, 1]], mode="edge"), ValueError),
        (lambda: tf.pad(tf.constant([1], tf.int8), [1, 1], constant_values=1.5), TypeError),
        (lambda: tf.tile(tf.zeros([2], tf.uint16), [2]), tf.errors.UnimplementedError),
        (lambda: tf.repeat(tf.zeros([2], tf.uint16), 3), tf.errors.UnimplementedError),
        (lambda: tf.where(tf.zeros([2], tf.float16)), tf.errors.UnimplementedError),
        (lambda: tf.where(tf.constant([1]), tf.constant([1]), 1.5), TypeError),
        (lambda: tf.unstack(tf.constant(1)), ValueError),
        (lambda: tf.unstack(tf.constant(1), num=2), tf.errors.InvalidArgumentError),
        (lambda: tf.unstack(tf.constant([1]), num=-1), tf.errors.InvalidArgumentError),
        (lambda: tf.concat([tf.constant([1])], axis=[0]), ValueError),
        (lambda: tf.split(tf.zeros([2, 2]), [-1]), tf.errors.InvalidArgumentError),
        (lambda: tf.gather_nd(tf.zeros([2]), [[0]], batch_dims=-1), ValueError),
        (lambda: tf.gather_nd(tf.zeros([2]), [1, 1], batch_dims=9), ValueError),
        (lambda: tf.scatter_nd(ONE_PLACE, tf.constant(3), [5]), tf.errors.InvalidArgumentError),
        (lambda: tf.scatter_nd(ONE_PLACE, tf.ones([3]), [5, 3]), tf.errors.InvalidArgumentError),
        (
            lambda: tf.scatter_nd(tf.zeros([1, 0], tf.int32), tf.zeros([1, 5]), [5]),
            tf.errors.InvalidArgumentError,
        ),
        (
            lambda: tf.scatter_nd(tf.constant([[1]], tf.int64), tf.ones([1]), tf.constant([5])),
            tf.errors.InvalidArgumentError,
        ),
        (
            lambda: tf.scatter_nd(tf.constant([[1]], tf.int16), tf.ones([1]), tf.constant([5], tf.int16)),
            tf.errors.NotFoundError,
        ),
        (lambda: tf.meshgrid(["a"]), TypeError),
        (lambda: tf.meshgrid([1], [2.0]), tf.errors.InvalidArgumentError),
    ],
)
def test_what_tensorflow_refuses_is_refused_with_its_error(
    call: Callable[[], Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: tf.reshape(tf.zeros([3, 0, 2]), [0, -1]), np.zeros((0, 6))),
        (lambda: tf.reshape(tf.zeros([3, 0, 2]), [4, 0, -1]), np.zeros((4, 0, 1))),
        (lambda: tf.reverse(tf.constant(3), 7), 3),
        (lambda: tf.reverse(tf.zeros([0]), [7, 7]), np.zeros(0)),
        (lambda: tf.pad(3, np.zeros((0, 2), int), "REFLECT"), 3),
        (lambda: tf.squeeze([[1]], axis=0.5), [1]),
        (lambda: tf.gather(tf.zeros([2, 0]), [-5]), np.zeros((1, 0))),
        (
            lambda: tf.gather([[1, 2, 3], [4, 5, 6]], [[0], [1]], axis=0, batch_dims=1),
            [[[1, 2, 3]], [[4, 5, 6]]],
        ),
        (
            lambda: tf.gather_nd([[1, 2], [3, 4]], tf.zeros([2, 2, 0], tf.int32), 1),
            [[[1, 2]] * 2, [[3, 4]] * 2],
        ),
        (lambda: tf.dynamic_stitch([[1]], [tf.zeros([1, 0])]), np.zeros((2, 0))),
        (lambda: tf.meshgrid([True, False], [2])[1], [[True, True]]),
        (lambda: tf.constant([2, 0]) * tf.constant([True, True]), [True, False]),
        (lambda: tf.constant([[1, 2], [3, 4]])[0, True], 2),
    ],
)
def test_what_tensorflow_takes_is_taken(made: Callable[[], Any], expected: Any) -> None:
    result = np.asarray(made())

    assert result.shape == np.shape(expected)
    assert np.array_equal(result, expected)


def test_masked_gradients_are_sums() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.boolean_mask(x, [True, False])

    found = np.asarray(tape.gradient(y, x, tf.constant([-0.0])))

    assert not np.signbit(found).any()
