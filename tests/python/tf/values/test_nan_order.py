"""NaN among what is compared: TensorFlow's outcomes, recorded from its kernels."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf

NAN = np.nan


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (tf.sort, [1, 3, NAN, 2]),
        (lambda x: tf.sort(x, direction="DESCENDING"), [3, NAN, 2, 1]),
        (tf.argsort, [2, 0, 1, 3]),
        (lambda x: tf.math.top_k(x, 1), [[2], [3]]),
        (lambda x: tf.math.top_k(x, 2), [[3, NAN], [0, 1]]),
        (lambda x: tf.math.top_k(x, 3), [[3, NAN, 2], [0, 1, 3]]),
        (tf.argmax, 0),
        (tf.argmin, 2),
        (lambda x: tf.math.segment_max(x, [0] * 4), [2]),
        (lambda x: tf.math.segment_min(x, [0, 0, 1, 1]), [NAN, 1]),
        (lambda x: tf.math.segment_max(x - np.inf, [0, 0, 2, 2]), [NAN, 0, -np.inf]),
        (lambda x: tf.math.unsorted_segment_max(x[2:] - np.inf, [0, 0], 1), [np.finfo(np.float32).min]),
        (lambda x: tf.math.unsorted_segment_max(x, [1, 1, -1, 1], 2), [np.finfo(np.float32).min, 2]),
        (lambda x: tf.nn.max_pool1d(x[None, :, None], 2, 1, "VALID")[0, :, 0], [3, 1, 2]),
        (lambda x: tf.math.in_top_k([0], x[None], 2), [False]),
        (lambda x: tf.searchsorted([0.0, 1.0, 2.0], x), [3, 0, 1, 2]),
        (lambda x: tf.histogram_fixed_width_bins(x, [0.0, 2.0], 4), [3, -(2**31), 2, 3]),
        (lambda x: tf.tensor_scatter_nd_max(x, [[0], [1]], [NAN, 1.0]), [3, NAN, 1, 2]),
        (tf.reduce_max, NAN),
    ],
)
def test_a_nan_among_others(call: Callable[..., Any], expected: Any) -> None:
    made = call(tf.constant([3.0, NAN, 1.0, 2.0]))
    np.testing.assert_array_equal(
        [each.numpy() for each in made] if isinstance(made, tuple) else made, expected
    )


def test_largest_places_are_those_of_the_heap_of_the_kernel() -> None:
    x = tf.constant([[NAN, 4.0, NAN, 0.5, 1.0, NAN, 2.0, 2.0]] * 2)
    assert tf.math.top_k(x, 4).indices.numpy().tolist() == [[0, 1, 2, 6]] * 2
    assert tf.math.top_k(x, 0).values.shape == (2, 0)


def test_windows_without_a_number_have_the_lowest() -> None:
    x = tf.constant([[[[NAN], [NAN], [-np.inf]]]])
    lowest = np.finfo(np.float32).min
    assert tf.nn.max_pool2d(x, [1, 2], 1, "VALID").numpy().reshape(-1).tolist() == [lowest, lowest]


def test_a_negative_nan_is_written_with_its_sign() -> None:
    assert tf.as_string(tf.constant([-NAN, NAN])).numpy().tolist() == [b"-nan", b"nan"]
