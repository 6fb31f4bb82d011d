"""``tf.layers`` of TensorFlow 1: names, collections and values."""

from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from support.child import run_program

v1 = tf.compat.v1
L = v1.layers


@pytest.fixture(autouse=True)
def session() -> Any:
    with tf.Graph().as_default(), v1.Session() as sess:
        yield sess


def names(key: str) -> list[str]:
    return [each.name for each in v1.get_collection(key)]


def net(x: Any, training: Any) -> Any:
    x = L.conv2d(x, 4, 3, activation=tf.nn.relu, kernel_regularizer=tf.keras.regularizers.L2(0.5))
    x = L.max_pooling2d(L.batch_normalization(x, training=training), 2, 2)
    x = L.dropout(L.flatten(x), 0.5, training=training)
    return L.dense(L.dense(L.dense(x, 3, activation=tf.tanh, name="fc"), 2), 2)


def test_names_scopes_reuse_and_collections(session: Any) -> None:
    x, training = v1.placeholder(tf.float32, [None, 6, 6, 2]), v1.placeholder(tf.bool, [])
    with v1.variable_scope("net"):
        one = net(x, training)
    with v1.variable_scope("net", reuse=True):
        two = net(x, training)
    kept = [
        f"net/batch_normalization/{each}:0" for each in ("gamma", "beta", "moving_mean", "moving_variance")
    ]
    weights = [
        [f"net/{layer}/{each}:0" for each in ("kernel", "bias")]
        for layer in ("conv2d", "fc", "dense", "dense_1")
    ]
    first, *others = weights
    rest = [name for layer in others for name in layer]
    assert names("variables") == [*first, *kept, *rest]
    assert names("trainable_variables") == [*first, *kept[:2], *rest]
    assert len(names("regularization_losses")) == 1
    assert names("regularization_losses")[0].startswith("net/conv2d/kernel/Regularizer/")
    updates = ("AssignMovingAvg", "AssignMovingAvg_1")
    assert names("update_ops") == [
        f"{net}/batch_normalization/{each}" for net in ("net", "net_1") for each in updates
    ]
    assert (one.name, two.name) == ("net/dense_1/BiasAdd:0", "net_1/dense_1/BiasAdd:0")
    made = {operation.name for operation in session.graph.get_operations()}
    assert {
        "net/conv2d/Conv2D",
        "net/conv2d/Relu",
        "net/max_pooling2d/MaxPool",
        "net/flatten/Reshape",
        "net/fc/Tanh",
    } <= made
    session.run(v1.global_variables_initializer())
    images = np.random.default_rng(0).random((4, 6, 6, 2), np.float32)
    found = session.run([one, two], {x: images, training: False})
    assert np.array_equal(*found)
    loss = tf.reduce_mean((one - 1.0) ** 2) + v1.get_collection("regularization_losses")[0]
    with tf.control_dependencies(v1.get_collection("update_ops")[:2]):
        step = v1.train.GradientDescentOptimizer(0.05).minimize(loss)
    losses = [session.run([loss, step], {x: images, training: True})[0] for _ in range(20)]
    assert losses[-1] < losses[0]


def test_dense_over_the_last_axis(session: Any) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    made = L.dense(
        tf.constant(x), 5, bias_initializer=v1.ones_initializer(), use_bias=True, activation=tf.nn.relu
    )
    assert (made.shape.as_list(), made.dtype) == ([2, 3, 5], tf.float64)
    session.run(v1.global_variables_initializer())
    kernel = v1.get_collection("variables")[0]
    value, weights = session.run([made, kernel])
    assert np.allclose(value, np.maximum(x @ weights + 1, 0))
    assert abs(weights).max() <= np.sqrt(6 / 9)
    assert L.dense(tf.zeros([2, 3]), 2, use_bias=False, name="bare").shape.as_list() == [2, 2]
    assert "bare/bias:0" not in names("variables")


@pytest.mark.parametrize(
    ("shape", "axis", "fused"), [((4, 3, 2, 5), -1, True), ((4, 5, 3, 2), 1, True), ((7, 5), -1, False)]
)
@pytest.mark.parametrize("fed", [True, False])
def test_what_batch_normalization_keeps(session: Any, shape: Any, axis: int, fused: bool, fed: bool) -> None:
    x = np.random.default_rng(1).normal(3, 2, shape).astype(np.float32)
    training = v1.placeholder(tf.bool, []) if fed else True
    made = L.batch_normalization(tf.constant(x), axis=axis, momentum=0.9, training=training, name="bn")
    feed = {training: True} if fed else {}
    session.run(v1.global_variables_initializer())
    value, *_ = session.run([made, *v1.get_collection("update_ops")], feed)
    axes = tuple(each for each in range(x.ndim) if each != axis % x.ndim)
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    assert np.allclose(value, (x - mean) / np.sqrt(variance + 1e-3), atol=1e-5)
    count = x.size / 5
    seen = variance.ravel() * (count / (count - 1) if fused else 1)
    kept = dict(zip(names("variables"), session.run(v1.get_collection("variables")), strict=True))
    assert np.allclose(kept["bn/moving_mean:0"], 0.1 * mean.ravel(), atol=1e-6)
    assert np.allclose(kept["bn/moving_variance:0"], 0.9 + 0.1 * seen, atol=1e-5)
    if fed:
        still = session.run([made, *v1.get_collection("update_ops")], {training: False})[0]
        after = session.run(v1.get_collection("variables"))
        assert all(map(np.array_equal, after, kept.values()))
        shown = [kept[f"bn/moving_{each}:0"].reshape(mean.shape) for each in ("mean", "variance")]
        assert np.allclose(still, (x - shown[0]) / np.sqrt(shown[1] + 1e-3), atol=1e-5)


def test_no_updates_where_nothing_is_trained(session: Any) -> None:
    x = tf.ones([3, 2])
    assert L.dropout(x, 0.5).op.type == "Identity"
    made = L.batch_normalization(x, epsilon=0.0)
    session.run(v1.global_variables_initializer())
    assert session.run(made).tolist() == np.ones((3, 2)).tolist()
    assert names("update_ops") == []


@pytest.mark.parametrize(
    ("shape", "expected"),
    [([None, 2, 3], [None, 6]), ([0, 2, 3], [0, 6]), ([4], [4, 1]), ([None, None, 2], [None, None])],
)
def test_flattened_shapes(shape: Any, expected: Any) -> None:
    assert L.flatten(v1.placeholder(tf.float32, shape)).shape.as_list() == expected


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: L.dense(tf.zeros([2, 3], tf.int32), 2),
            TypeError,
            "Unable to build `Dense` layer with non-floating",
        ),
        (
            lambda: L.dense(v1.placeholder(tf.float32, [2, None]), 2),
            ValueError,
            "last dimension of the inputs to `Dense`",
        ),
        (
            lambda: [L.dense(tf.zeros([2, 3]), 2, name="a") for _ in range(2)],
            ValueError,
            "a/kernel already exists",
        ),
        (lambda: L.dense(tf.zeros([2, 3]), 2, name="b", reuse=True), ValueError, "b/kernel does not exist"),
        (
            lambda: L.conv2d(tf.zeros([1, 4, 4, 1]), 2, 3, padding="x"),
            ValueError,
            "`padding` argument must be one of",
        ),
        (
            lambda: L.conv2d(tf.zeros([1, 4, 4, 1]), 2, (3,)),
            ValueError,
            "`kernel_size` argument must be a tuple of 2",
        ),
        (
            lambda: L.flatten(tf.zeros([2]), data_format="x"),
            ValueError,
            "`data_format` argument must be one of",
        ),
        (
            lambda: L.batch_normalization(tf.zeros([2, 2]), renorm=True),
            NotImplementedError,
            "`renorm` is not offered",
        ),
        (
            lambda: L.conv3d,
            NotImplementedError,
            r"layers\.conv3d is not offered\. Available: average_pooling2d, batch",
        ),
    ],
)
def test_layers_that_there_are_not(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_programs_of_tensorflow_1() -> None:
    done = run_program("""
import allotment.tf.v1 as tf
with tf.variable_scope("net"):
    y = tf.layers.dense(tf.ones([2, 3]), 4, activation=tf.nn.relu)
    z = tf.constant(1.0, name="z")
assert (y.name, z.name) == ("net/dense/Relu:0", "net/z:0")
assert [v.op.type for v in tf.global_variables()] == ["VariableV2"] * 2
with tf.variable_scope("r", use_resource=True):
    tf.layers.dense(tf.ones([2, 3]), 4)
assert tf.global_variables()[-1].op.type == "VarHandleOp"
assert tf.get_variable("own", [1]).op.type == "VariableV2"
""")
    assert done.returncode == 0, done.stderr
