"""The program that devices are planned for: towers over slices of one batch, variables on the CPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf.v1 as tf

#: The losses of both towers in TensorFlow, step after step.
LOSSES = [
    [1.1297857, 1.1213055],
    [1.0229806, 1.0000294],
    [0.9704801, 0.9831715],
    [0.7802026, 0.8632035],
    [0.6186441, 0.7587996],
]


def variables_on_the_cpu(device: str) -> Callable[[Any], str]:
    return lambda op: "/cpu:0" if op.type in ("VariableV2", "VarHandleOp") else device


def network(batch: Any, filters: Any, weights: Any) -> Any:
    """Scores of flat pictures: convolution, pooling, one layer."""
    pictures = tf.reshape(batch, [-1, 8, 8, 1])
    kernel = tf.get_variable("kernel", initializer=filters)
    bias = tf.get_variable("bias", [4], initializer=tf.zeros_initializer())
    hidden = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(pictures, kernel, [1, 1, 1, 1], "SAME"), bias))
    pooled = tf.nn.max_pool2d(hidden, 2, 2, "SAME")
    flat = tf.reshape(pooled, [tf.shape(pooled)[0], 64])
    return tf.matmul(flat, tf.get_variable("w", initializer=weights))


@pytest.mark.parametrize("length", [None, 24])
@pytest.mark.parametrize(
    "cut", [lambda x: (x[:8], x[8:]), lambda x: tf.split(x, [8, 16]), lambda x: (x[:-16], x[-16:])]
)
def test_convolutional_towers_train_with_the_losses_of_tensorflow(length: int | None, cut: Any) -> None:
    rng = np.random.default_rng(5)
    images = rng.normal(size=(24, 64)).astype(np.float32)
    labels = rng.integers(0, 3, 24)
    filters = (rng.normal(size=(3, 3, 1, 4)) * 0.3).astype(np.float32)
    weights = (rng.normal(size=(64, 3)) * 0.1).astype(np.float32)
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [length, 64]), tf.placeholder(tf.int32, [length])
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        losses, found = [], []
        with tf.variable_scope(tf.get_variable_scope()):
            for number, (batch, answers) in enumerate(zip(cut(x), cut(y), strict=True)):
                with tf.device(variables_on_the_cpu(f"/gpu:{number}")), tf.name_scope(f"tower_{number}"):
                    logits = network(batch, filters, weights)
                    assert logits.shape.is_compatible_with([8 * (number + 1), 3])
                    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=answers, logits=logits)
                    losses.append(tf.reduce_mean(each))
                    tf.get_variable_scope().reuse_variables()
                    found.append(optimizer.compute_gradients(losses[-1]))
        means = []
        for pairs in zip(*found, strict=True):
            stacked = tf.concat([tf.expand_dims(gradient, 0) for gradient, _ in pairs], 0)
            means.append((tf.reduce_mean(stacked, 0), pairs[0][1]))
        train = optimizer.apply_gradients(means)
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            steps = [session.run([losses, train], {x: images, y: labels})[0] for _ in LOSSES]
        assert {each.op.device for each in tf.global_variables()} == {"/cpu:0"}
    np.testing.assert_allclose(steps, LOSSES, rtol=2e-6)


def test_networks_of_flat_pictures_train_with_the_losses_of_tensorflow() -> None:
    rng = np.random.default_rng(0)
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int64, [None])
        rate = tf.placeholder(tf.float32, [])
        kernel = tf.get_variable("kernel", [5, 5, 1, 4], initializer=tf.constant_initializer(0.01))
        pictures = tf.nn.conv2d(tf.reshape(x, [-1, 28, 28, 1]), kernel, [1, 1, 1, 1], "SAME")
        pooled = tf.nn.max_pool2d(tf.nn.relu(pictures), 2, 2, "SAME")
        assert pooled.shape.as_list() == [None, 14, 14, 4]
        flat = tf.nn.dropout(tf.reshape(pooled, [-1, 14 * 14 * 4]), rate=rate)
        weights = tf.get_variable("weights", [14 * 14 * 4, 10], initializer=tf.zeros_initializer())
        logits = tf.matmul(flat, weights)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        train = tf.train.GradientDescentOptimizer(0.02).minimize(loss)
        feeds = {x: rng.uniform(size=(16, 784)), y: rng.integers(0, 10, 16), rate: 0.0}
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            losses = [session.run([loss, train], feeds)[0] for _ in range(5)]
    # TensorFlow's.
    np.testing.assert_allclose(losses, [2.3025851, 2.290495, 2.2784398, 2.2654715, 2.2508788], rtol=2e-6)


def test_images_are_spread_to_a_batch_of_any_length() -> None:
    with tf.Graph().as_default():
        z = tf.placeholder(tf.float32, [None, 4, 4, 3])
        filters = tf.ones([2, 2, 5, 3])
        spread = tf.nn.conv2d_transpose(z, filters, [tf.shape(z)[0], 8, 8, 5], 2)
        (slope,) = tf.gradients(spread, z)
        assert (spread.shape.as_list(), slope.shape.as_list()) == ([None, 8, 8, 5], [None, 4, 4, 3])
        with tf.Session() as session:
            made, found = session.run([spread, slope], {z: np.ones((2, 4, 4, 3))})
    np.testing.assert_array_equal(made, np.full((2, 8, 8, 5), 3))
    np.testing.assert_array_equal(found, np.full((2, 4, 4, 3), 20))
