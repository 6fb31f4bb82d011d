"""Softmax and cross entropies, against their definitions in Python."""

import math
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.tf import nn
from support.tf.tensors import check, check_refused, tensor

LOGITS = [[1.0, 2.0, 3.0], [0.0, 0.0, math.log(2)]]


def shares(logits: list[float]) -> list[float]:
    total = sum(math.exp(each) for each in logits)
    return [math.exp(each) / total for each in logits]


SHARES = [shares(row) for row in LOGITS]
TOLERANCE = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-13}


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_softmax(dtype: str) -> None:
    x = tensor(LOGITS, dtype)
    check(nn.softmax(x), SHARES, dtype, rtol=TOLERANCE[dtype])
    check(nn.log_softmax(x), np.log(SHARES), dtype, rtol=TOLERANCE[dtype])
    turned = tensor(np.transpose(LOGITS), dtype)
    check(nn.softmax(turned, axis=0), np.transpose(SHARES), dtype, rtol=TOLERANCE[dtype])
    check(nn.softmax(tensor(LOGITS[0], dtype), axis=0), SHARES[0], dtype, rtol=TOLERANCE[dtype])
    check(
        nn.log_softmax(tensor([turned.numpy()]), 1),
        [np.log(np.transpose(SHARES))],
        dtype,
        rtol=TOLERANCE[dtype],
    )


def test_large_logits() -> None:
    check(nn.softmax(tensor([1000.0, 1000.0])), [0.5, 0.5], "float32")
    check(nn.softmax(tensor([-1000.0, 0.0])), [0, 1], "float32")
    check(nn.log_softmax(tensor([-1000.0, 0.0])), [-1000, 0], "float32")
    check(nn.softmax(tensor(np.zeros((2, 0)))), np.zeros((2, 0)), "float64")


def test_axes_that_are_not_there() -> None:
    check_refused(
        nn.softmax, tensor([[1.0]]), 2, text="`axis` (2) must be in the range [-2, 2) where 2 is the number"
    )
    check_refused(nn.softmax, tensor(1.0), text="logits must have >= 1 dimension, got []")
    check_refused(nn.softmax, tensor([1]), text="[Op:Softmax]")


LABELS = [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
ENTROPIES = [
    -sum(label * math.log(share) for label, share in zip(labels, row, strict=True))
    for labels, row in zip(LABELS, SHARES, strict=True)
]


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_cross_entropies_of_distributions(dtype: str) -> None:
    entropy = nn.softmax_cross_entropy_with_logits
    labels, logits = tensor(LABELS, dtype), tensor(LOGITS, dtype)
    check(entropy(labels, logits), ENTROPIES, dtype, rtol=TOLERANCE[dtype])
    check(entropy(labels=labels, logits=logits, axis=1), ENTROPIES, dtype, rtol=TOLERANCE[dtype])
    turned = tensor(np.transpose(LABELS), dtype), tensor(np.transpose(LOGITS), dtype)
    check(entropy(*turned, axis=0), ENTROPIES, dtype, rtol=TOLERANCE[dtype])


def test_axes_around_the_classes() -> None:
    labels, logits = np.stack([LABELS] * 4, 1), np.stack([LOGITS] * 4, 1)
    expected = np.stack([ENTROPIES] * 4, 1)
    for axis in range(3):
        moved = [tensor(np.moveaxis(each, -1, axis).copy()) for each in (labels, logits)]
        check(nn.softmax_cross_entropy_with_logits(moved[0], moved[1], axis), expected, "float64")


def test_labels_of_another_type_are_cast() -> None:
    check(
        nn.softmax_cross_entropy_with_logits(tensor([0, 0, 1]), tensor([0.0, 0.0, 0.0])),
        math.log(3),
        "float32",
    )
    check(nn.softmax_cross_entropy_with_logits([0, 0, 1], tensor([0.0, 0.0, 0.0])), math.log(3), "float32")


@pytest.mark.parametrize("labels", [[2, 0], tensor([2, 0], "int64")])
def test_cross_entropies_of_classes(labels: Any) -> None:
    entropy = nn.sparse_softmax_cross_entropy_with_logits
    expected = [-math.log(SHARES[0][2]), -math.log(SHARES[1][0])]
    for dtype, tolerance in TOLERANCE.items():
        check(entropy(labels, tensor(LOGITS, dtype)), expected, dtype, rtol=tolerance)
    check(entropy(labels=[labels, labels], logits=tensor([LOGITS, LOGITS])), [expected, expected], "float32")
    check(entropy(tensor(2), tensor(LOGITS[0])), expected[0], "float32")


def test_classes_that_are_not_there() -> None:
    entropy, x = nn.sparse_softmax_cross_entropy_with_logits, tensor(LOGITS)
    text = "Received a label value of 3 which is outside the valid range of [0, 3).  Label values: 3 0"
    check_refused(entropy, [3, 0], x, text=text)
    check_refused(entropy, [0, -1], x, text="Received a label value of -1")
    check_refused(
        entropy, [0.0, 1.0], x, text="Value for attr 'Tlabels' of float is not in the list of allowed values"
    )
    with pytest.raises(
        ValueError, match=r"Rank of labels \(received 2\) should equal rank of logits minus 1"
    ):
        entropy([[0], [1]], x)
    with pytest.raises(ValueError, match=r"labels.shape=\(3,\) and logits.shape=\(2, 3\)"):
        entropy([0, 1, 2], x)
    with pytest.raises(ValueError, match="Logits cannot be scalars"):
        entropy(0, tensor(1.0))


def test_cross_entropies_of_single_probabilities() -> None:
    labels, logits = [1.0, 0.0, 0.25, 0.5], [2.0, -1.0, 3.0, 0.0]
    expected = []
    for label, logit in zip(labels, logits, strict=True):
        share = 1 / (1 + math.exp(-logit))
        expected.append(-label * math.log(share) - (1 - label) * math.log(1 - share))
    check(nn.sigmoid_cross_entropy_with_logits(tensor(labels), tensor(logits)), expected, "float32")
    check(
        nn.sigmoid_cross_entropy_with_logits(
            labels=tensor(labels, "float64"), logits=tensor(logits, "float64")
        ),
        expected,
        "float64",
    )
    check(
        nn.sigmoid_cross_entropy_with_logits(tensor([0.0, 1.0]), tensor([500.0, 500.0])), [500, 0], "float32"
    )
    with pytest.raises(ValueError, match=r"must have the same shape, received \(\(2,\) vs \(1,\)\)"):
        nn.sigmoid_cross_entropy_with_logits(tensor([0.0]), tensor([0.0, 1.0]))


def test_labels_have_a_type_of_their_own() -> None:
    logits = tensor([0.0, 1.0])
    check_refused(nn.sigmoid_cross_entropy_with_logits, [1, 0], logits, text="[Op:Mul]")
    with pytest.raises(TypeError):
        nn.weighted_cross_entropy_with_logits([1, 0], logits, 3.0)


@pytest.mark.parametrize(
    ("labels", "logits", "expected"),
    [
        ([1.0, 0.0], [[1.0], [2.0]], [math.log(2)] * 2),
        ([[1.0, 0.0], [0.0, 1.0]], [[1.0], [2.0]], [math.log(2)] * 2),
        ([0.0, 1.0], [[0.0, 0.0], [0.0, 0.0]], [math.log(2)] * 2),
        ([[1.0], [1.0]], [[0.0, 0.0], [0.0, 0.0]], [2 * math.log(2)] * 2),
    ],
)
def test_rows_of_labels_and_logits_are_broadcast(labels: Any, logits: Any, expected: Any) -> None:
    check(nn.softmax_cross_entropy_with_logits(tensor(labels), tensor(logits)), expected, "float32")


def test_the_slope_of_weighted_cross_entropies_at_zero() -> None:
    logits = tensor([0.0, 0.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        losses = nn.weighted_cross_entropy_with_logits([1.0, 0.0, 0.0], logits, 2.0)
    check(tape.gradient(losses, logits), [0, 1, 1 / (1 + math.exp(-1))], "float32")


def test_what_is_missing_is_named() -> None:
    x = tensor(LOGITS)
    for entropy in (
        nn.softmax_cross_entropy_with_logits,
        nn.sparse_softmax_cross_entropy_with_logits,
        nn.sigmoid_cross_entropy_with_logits,
    ):
        with pytest.raises(ValueError, match="needs labels"):
            entropy(labels=None, logits=x)
        with pytest.raises(ValueError, match="needs logits"):
            entropy(labels=x, logits=None)


def test_shapes_that_do_not_fit() -> None:
    text = "logits and labels must be broadcastable: logits_size=[2,3] labels_size=[1,4]"
    check_refused(nn.softmax_cross_entropy_with_logits, tensor([[0.25] * 4]), tensor(LOGITS), text=text)
    # As many losses as there are rows of logits.
    text = "Input to reshape is a tensor with 2 values"
    check_refused(nn.softmax_cross_entropy_with_logits, tensor(LOGITS), tensor(LOGITS[0]), text=text)
    with tf.GradientTape() as tape:
        x = tf.Variable([[1.0], [2.0]])
        losses = nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], x)
    check_refused(tape.gradient, losses, x, text="Input to reshape is a tensor with 4 values")


def test_classes_of_logits_of_unknown_rank() -> None:
    with tf.compat.v1.Graph().as_default(), tf.compat.v1.Session() as session:
        logits, labels = tf.compat.v1.placeholder(tf.float32), tf.compat.v1.placeholder(tf.int32)
        losses = nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        slopes = tf.compat.v1.gradients(losses, logits)[0]
        made = session.run([losses, slopes], {logits: np.zeros((1, 2)), labels: [1]})
        np.testing.assert_allclose(made[0], [math.log(2)], rtol=1e-6)
        assert made[1].tolist() == [[0.5, -0.5]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="must have the same first dimension"):
            session.run(losses, {logits: np.zeros((1, 2)), labels: [1, 0]})
