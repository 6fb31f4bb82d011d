"""Losses of TensorFlow 1: one number, weights, reductions, and the collection of a graph. Values are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import allotment.tf.compat.v1 as v1
import allotment.tf.v1 as tf1
from allotment import errors
from allotment.tf.compat.v1 import losses
from allotment.tf.ops.array.constants import constant

TRUE = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]], np.float32)
MADE = np.array([[0.5, 2.0, 1.0], [-1.0, 0.25, 3.0]], np.float32)
WEIGHTS = np.array([[2.0], [0.0]], np.float32)
R = losses.Reduction

#: Recorded from TensorFlow 2.21: without weights, and with ``WEIGHTS``.
VALUES: dict[str, tuple[float, float]] = {
    "absolute_difference": (0.95833331, 1.6666666),
    "mean_squared_error": (1.5520834, 2.8333333),
    "huber_loss": (0.609375, 1.0833334),
    "sigmoid_cross_entropy": (0.68367583, 1.9428445),
    "softmax_cross_entropy": (1.7538869, 6.8574753),
}
REDUCED: dict[str, Any] = {
    "NONE": [[1.0, 4.0, 0.0], [0.0, 0.0, 0.0]],
    "SUM": 5.0,
    "SUM_OVER_BATCH_SIZE": 0.8333333134651184,
    "MEAN": 0.8333333134651184,
    "SUM_BY_NONZERO_WEIGHTS": 1.6666666269302368,
}


@pytest.mark.parametrize("name", VALUES)
def test_losses_are_one_number_over_the_weights_that_are_not_0(name: str) -> None:
    plain, weighted = VALUES[name]
    loss = getattr(losses, name)
    np.testing.assert_allclose(loss(TRUE, MADE).numpy(), plain, rtol=1e-5)
    given = WEIGHTS[:, 0] if name == "softmax_cross_entropy" else WEIGHTS
    np.testing.assert_allclose(loss(TRUE, MADE, weights=given).numpy(), weighted, rtol=1e-5)


@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name: str) -> None:
    found = losses.absolute_difference(TRUE, MADE, WEIGHTS, reduction=getattr(R, name))
    np.testing.assert_allclose(found.numpy(), REDUCED[name], rtol=1e-6)


@pytest.mark.parametrize("labels", [[0, 2], [[0], [2]]])
@pytest.mark.parametrize("weights", [[1.0, 0.0], [[1.0], [0.0]]])
def test_classes_by_number(labels: Any, weights: Any) -> None:
    found = losses.sparse_softmax_cross_entropy(labels, constant(MADE), weights)
    np.testing.assert_allclose(found.numpy(), -np.log(np.exp(0.5) / np.exp(MADE[0]).sum()), rtol=1e-5)


def test_a_graph_collects_losses() -> None:
    with tf1.Graph().as_default():
        x = tf1.placeholder("float32", [None, 3])
        squared = tf1.losses.mean_squared_error(TRUE, x, scope="own")
        tf1.losses.huber_loss(TRUE, x, loss_collection=None)
        absolute = tf1.losses.absolute_difference(TRUE, x)
        tf1.add_to_collection(tf1.GraphKeys.REGULARIZATION_LOSSES, tf1.constant(0.5))
        assert tf1.losses.get_losses() == [squared, absolute]
        assert tf1.losses.get_losses("own") == [squared]
        total, penalty = tf1.losses.get_total_loss(), tf1.losses.get_regularization_loss()
        (gradient,) = tf1.gradients(squared, [x])
        with tf1.Session() as session:
            values = session.run([squared, absolute, penalty, total, gradient], {x: MADE})
    np.testing.assert_allclose(values[3], sum(values[:3]), rtol=1e-6)
    np.testing.assert_allclose(values[4], 2 * (MADE - TRUE) / 6, rtol=1e-6)


def test_losses_that_cannot_be() -> None:
    wrong: list[Any] = [
        (lambda: losses.mean_squared_error(TRUE, MADE[:1]), "are incompatible"),
        (lambda: losses.mean_squared_error(None, MADE), "`labels` must not be None"),
        (lambda: losses.mean_squared_error(TRUE, MADE, weights=np.ones(2)), "can not be broadcast"),
        (lambda: losses.mean_squared_error(TRUE, MADE, reduction="sum"), "Invalid Reduction Key sum"),
    ]
    for call, text in wrong:
        with pytest.raises(ValueError, match=text):
            call()
    assert v1.losses is losses


def test_weights_whose_shape_only_the_session_knows_are_checked_there() -> None:
    with v1.Graph().as_default():
        made, weights = v1.placeholder(v1.float32), v1.placeholder(v1.float32)
        loss = losses.huber_loss(TRUE, made, weights)
        with v1.Session() as session:
            assert session.run(loss, {made: MADE, weights: WEIGHTS}) == np.float32(VALUES["huber_loss"][1])
            assert session.run(loss, {made: MADE, weights: 1.0}) == np.float32(VALUES["huber_loss"][0])
            with pytest.raises(errors.InvalidArgumentError, match="weights can not be broadcast to values"):
                session.run(loss, {made: MADE, weights: WEIGHTS[:, 0]})


def test_labels_of_unknown_rank_lose_an_axis_of_length_1() -> None:
    logits, classes = np.array([[1, 2, 3], [0, 1, 0]], np.float32), np.array([[1], [2]], np.int32)
    wanted = losses.sparse_softmax_cross_entropy(classes, logits, WEIGHTS)
    with v1.Graph().as_default():
        labels, made, weights = (
            v1.placeholder(v1.int32),
            v1.placeholder(v1.float32),
            v1.placeholder(v1.float32),
        )
        loss = losses.sparse_softmax_cross_entropy(labels, made, weights)
        with v1.Session() as session:
            for shape in ([2, 1], [2]):
                fed = {labels: classes.reshape(shape), made: logits, weights: WEIGHTS}
                assert session.run(loss, fed) == np.float32(wanted)
                fed[weights] = WEIGHTS[:, 0]
                assert session.run(loss, fed) == np.float32(wanted)
