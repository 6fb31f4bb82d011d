"""Axes, sizes, shifts and the like that only a session knows, with gradients. Expected values are TensorFlow's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf

v1 = tf.compat.v1

X = np.array([[3.0, 1.0, 2.0], [1.0, 5.0, 4.0]], np.float32)


def run(function: Callable[..., Any], number: Any, shape: Any, known: Any = (2, 3)) -> tuple[Any, Any]:
    """Return the values of a function of ``X`` and a fed number, and the gradient of half the sum of their squares."""
    with tf.Graph().as_default(), v1.Session() as session:
        x, fed = v1.placeholder(tf.float32, known), v1.placeholder(tf.int32, shape)
        made = function(x, fed)
        slope = tf.gradients(made * made / 2, x)[0] if made.dtype.is_floating else None
        found = [made] if slope is None else [made, tf.convert_to_tensor(slope)]
        value, *slopes = session.run(found, {x: X, fed: number})
        return value.tolist(), slopes[0].tolist() if slopes else None


@pytest.mark.parametrize("known", [(2, 3), (None, None), None])
@pytest.mark.parametrize("shape", [(), None])
@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda x, a: tf.roll(x, a, 0), [[1, 5, 4], [3, 1, 2]]),
        (lambda x, a: tf.roll(x, a, a), [[2, 3, 1], [4, 1, 5]]),
        (lambda x, a: tf.roll(x, tf.shape(x)[0] - a, 0), [[1, 5, 4], [3, 1, 2]]),
        (lambda x, a: tf.gather(x, [1, 0, 2], axis=a), [[1, 3, 2], [5, 1, 4]]),
        (lambda x, a: tf.sort(x, axis=0), [[1, 1, 2], [3, 5, 4]]),
        (lambda x, a: tf.sort(x, axis=1, direction="DESCENDING"), [[3, 2, 1], [5, 4, 1]]),
        (lambda x, a: tf.boolean_mask(x, [True, True, True], axis=a), X.tolist()),
        (lambda x, a: x[:, ::a], X.tolist()),
    ],
)
def test_elements_in_another_order(function: Any, value: Any, shape: Any, known: Any) -> None:
    # Each element is in the result once: half the sum of the squares has the element as its slope.
    assert run(function, 1, shape, known) == (value, X.tolist())


@pytest.mark.parametrize("shape", [(), None])
def test_repeats_have_the_sum_of_the_gradients(shape: Any) -> None:
    assert run(lambda x, a: tf.repeat(x, a), 2, shape) == (np.repeat(X, 2).tolist(), (2 * X).tolist())
    assert run(lambda x, a: tf.repeat(x, a, axis=1), 2, shape) == (
        np.repeat(X, 2, 1).tolist(),
        (2 * X).tolist(),
    )
    assert run(lambda x, a: tf.repeat(x, tf.shape(x)[0]), 2, shape, (None, 3))[1] == (2 * X).tolist()
    assert run(lambda x, a: tf.repeat(x, [a, 1], axis=0), 2, shape)[0] == X[[0, 0, 1]].tolist()
    assert run(lambda x, a: tf.concat([x, x], a), -1, shape) == (np.hstack([X, X]).tolist(), (2 * X).tolist())


@pytest.mark.parametrize("shape", [(), None])
def test_diagonals_and_counts(shape: Any) -> None:
    assert run(lambda x, a: tf.linalg.diag_part(x, k=a), 1, shape) == ([1, 4], [[0, 1, 0], [0, 0, 4]])
    assert run(lambda x, a: tf.linalg.diag(x[0, :1], k=a), 1, shape) == (
        [[0, 3], [0, 0]],
        [[3, 0, 0], [0, 0, 0]],
    )
    assert run(lambda x, a: tf.linalg.set_diag(x, [7.0, 8.0], k=a), 1, shape)[0] == [[3, 7, 2], [1, 5, 8]]
    assert run(lambda x, a: tf.math.bincount([1, 2], minlength=a), 5, shape) == ([0, 1, 1, 0, 0], None)
    assert run(lambda x, a: tf.math.bincount([1, 2], maxlength=a), 2, shape) == ([0, 1], None)
    assert run(lambda x, a: tf.sequence_mask([1, 0], a), 2, shape)[0] == [[True, False], [False, False]]


@pytest.mark.parametrize("shape", [[2], [None], None])
def test_vectors_that_are_fed(shape: Any) -> None:
    assert run(lambda x, a: tf.linalg.diag_part(x, k=a), [-1, 0], shape)[0] == [[3, 5], [1, 0]]
    assert run(lambda x, a: tf.roll(x, a, [0, 1]), [1, 1], shape) == ([[4, 1, 5], [2, 3, 1]], X.tolist())
    assert run(lambda x, a: tf.shape(tf.eye(2, batch_shape=a)), [3, 1], shape)[0] == [3, 1, 2, 2]
    assert run(lambda x, a: tf.shape(tf.nn.dropout(x, 0.5, noise_shape=a)), [2, 1], shape)[0] == [2, 3]


def test_two_diagonals_by_one_number() -> None:
    assert run(lambda x, a: tf.linalg.diag_part(x, k=a), [1], [None])[0] == [1, 4]
