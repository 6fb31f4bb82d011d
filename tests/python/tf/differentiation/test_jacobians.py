"""Jacobians: their shapes, what has none, and what a batch leaves out."""

import numpy as np
import pytest

import allotment.tf as tf


def test_jacobians_have_the_shape_of_the_target_and_of_the_source() -> None:
    x, w = tf.constant([1.0, 2.0, 3.0]), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.stack([x * x, w * x])
    by_x, by_w, none = tape.jacobian(y, [x, w, tf.Variable(1.0)])
    assert by_x.shape == (2, 3, 3)
    np.testing.assert_array_equal(by_x[0].numpy(), np.diag([2.0, 4.0, 6.0]))
    np.testing.assert_array_equal(by_w.numpy(), [[0, 0, 0], [1, 2, 3]])
    assert none is None


def test_unconnected_jacobians_are_zeros_if_asked() -> None:
    with tf.GradientTape() as tape:
        y = tf.Variable([1.0, 2.0]) * 2
    assert tape.jacobian(y, tf.Variable(tf.ones([3])), unconnected_gradients="zero").shape == (2, 3)


def test_jacobians_element_by_element_take_a_persistent_tape() -> None:
    x = tf.constant([[1.0, 2.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.jacobian(y, x, experimental_use_pfor=False).shape == (1, 2, 1, 2)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(RuntimeError, match="must be created with persistent=True to compute the jacobian"):
        tape.jacobian(y, x, experimental_use_pfor=False)


def test_batch_jacobians_leave_out_what_is_zero_between_entries() -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.stack([x * x, 10 * x[:, ::-1]], 1)
    found = tape.batch_jacobian(y, x)
    assert found.shape == (2, 2, 2, 2)
    whole = tape.jacobian(y, x).numpy()
    np.testing.assert_array_equal(found.numpy(), [whole[0, :, :, 0], whole[1, :, :, 1]])
    assert tape.batch_jacobian(y, tf.ones([2, 3])).numpy().tolist() == np.zeros((2, 2, 2, 3)).tolist()
    with pytest.raises(ValueError, match=r"first dimension of target shape \(\(1, 2, 2\)\) and"):
        tape.batch_jacobian(y[:1], x)


def test_jacobians_are_of_one_target() -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    for target in ([y, y], None, "y"):
        with pytest.raises(TypeError, match="must be one tensor or variable"):
            tape.jacobian(target, x)
    with pytest.raises(TypeError, match=r"the source of GradientTape\.batch_jacobian must be one tensor"):
        tape.batch_jacobian(tf.ones([2, 2]), [x])


def test_the_jacobian_of_a_target_without_elements_is_empty() -> None:
    x, other = tf.Variable([1.0, 2.0]), tf.Variable([[1.0]])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reshape(x[:0] * 2.0, [0, 3])
    by_x, by_other = tape.jacobian(y, [x, other])
    assert by_x.shape == (0, 3, 2)
    assert by_other is None
    assert tape.jacobian(y, other, unconnected_gradients="zero").shape == (0, 3, 1, 1)
    assert tape.jacobian(y, y).shape == (0, 3, 0, 3)
