"""Losses: values beside plain NumPy, how they become one, and parts of a batch."""

from typing import Any

import numpy as np
import pytest

from allotment import errors
from allotment.tf import keras
from allotment.tf.keras import losses
from allotment.tf.keras.losses import lookup
from allotment.tf.ops.array.constants import constant
from support.tf.tensors import check

draw = np.random.default_rng(0)
TRUE = draw.uniform(0, 1, (6, 3))
PREDICTED = draw.uniform(0.05, 0.95, (6, 3))
CLASSES = draw.integers(0, 3, 6)
LOGITS = draw.standard_normal((6, 3))


def logs_of_shares(logits: Any) -> Any:
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def huber(delta: float) -> Any:
    error = abs(TRUE - PREDICTED)
    return np.where(error <= delta, error**2 / 2, delta * error - delta**2 / 2).mean(1)


def binary(true: Any, likely: Any) -> Any:
    return -(true * np.log(likely) + (1 - true) * np.log(1 - likely)).mean(1)


ONE_HOT = np.eye(3)[CLASSES]
SIGMOID = 1 / (1 + np.exp(-LOGITS))
NORMED = PREDICTED / PREDICTED.sum(1, keepdims=True)

CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    "mse": (losses.MeanSquaredError(), TRUE, PREDICTED, ((TRUE - PREDICTED) ** 2).mean(1)),
    "mae": (losses.MeanAbsoluteError(), TRUE, PREDICTED, abs(TRUE - PREDICTED).mean(1)),
    "huber": (losses.Huber(), TRUE, PREDICTED, huber(1.0)),
    "huber, narrow": (losses.Huber(delta=0.1), TRUE, PREDICTED, huber(0.1)),
    "binary": (losses.BinaryCrossentropy(), TRUE, PREDICTED, binary(TRUE, PREDICTED)),
    "binary, logits": (losses.BinaryCrossentropy(from_logits=True), TRUE, LOGITS, binary(TRUE, SIGMOID)),
    "binary, smooth": (
        losses.BinaryCrossentropy(label_smoothing=0.2),
        TRUE,
        PREDICTED,
        binary(0.8 * TRUE + 0.1, PREDICTED),
    ),
    "categorical": (losses.CategoricalCrossentropy(), ONE_HOT, PREDICTED, -np.log((ONE_HOT * NORMED).sum(1))),
    "categorical, logits": (
        losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.3),
        ONE_HOT,
        LOGITS,
        -((0.7 * ONE_HOT + 0.1) * logs_of_shares(LOGITS)).sum(1),
    ),
    "sparse": (
        losses.SparseCategoricalCrossentropy(),
        CLASSES,
        NORMED,
        -np.log(NORMED[np.arange(6), CLASSES]),
    ),
    "sparse, logits": (
        losses.SparseCategoricalCrossentropy(from_logits=True),
        CLASSES[:, None],
        LOGITS,
        -logs_of_shares(LOGITS)[np.arange(6), CLASSES],
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_losses_are_what_numpy_makes(case: str, dtype: str) -> None:
    loss, true, predicted, wanted = CASES[case]
    rtol = 1e-5 if dtype == "float32" else 1e-9
    values = loss.call(constant(true), constant(predicted, dtype))
    check(values, wanted, dtype, rtol=rtol, atol=1e-6 if dtype == "float32" else 1e-9)
    check(loss(true, constant(predicted, dtype)), wanted.mean(), "float32", rtol=1e-5, atol=1e-6)
    wide = type(loss)(dtype="float64", **vars(loss)["_arguments"])
    check(wide(true, constant(predicted, "float64")), wanted.mean(), "float64", rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_weights_of_samples_and_ways_to_make_one(case: str) -> None:
    loss, true, predicted, wanted = CASES[case]
    weights = draw.uniform(0, 2, 6)
    predicted = constant(predicted, "float32")
    for shape in ((6,), (6, 1)):
        check(loss(true, predicted, weights.reshape(shape)), (weights * wanted).mean(), "float32", 1e-5, 1e-6)
    arguments = vars(loss)["_arguments"]
    kind = type(loss)
    for reduction, expected in (
        ("sum", wanted.sum()),
        ("none", wanted),
        (None, wanted),
        ("mean", wanted.mean()),
    ):
        check(kind(reduction=reduction, **arguments)(true, predicted), expected, "float32", 1e-5, 1e-6)
    by_weight = kind(reduction="mean_with_sample_weight", **arguments)
    check(by_weight(true, predicted, weights), np.average(wanted, weights=weights), "float32", 1e-5, 1e-6)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum"])
def test_parts_of_a_batch_add_up_to_its_loss(case: str, reduction: str) -> None:
    loss, true, predicted, _ = CASES[case]
    loss = type(loss)(reduction=reduction, **vars(loss)["_arguments"])
    parts = [
        float(loss.part(true[rows], constant(predicted[rows]), None, 6))
        for rows in (slice(0, 1), slice(1, 4), slice(4, 6), slice(6, 6))
    ]
    assert sum(parts) == pytest.approx(float(loss(true, constant(predicted))), rel=1e-6)


def test_a_loss_that_has_made_values_one_is_weighted_by_its_samples() -> None:
    loss = lookup.as_object(lambda y_true, y_pred: float(np.mean(np.asarray(y_pred))))
    parts = [float(loss.part(None, constant(each), None, 4)) for each in ([1.0], [2.0, 4.0, 6.0])]
    assert sum(parts) == pytest.approx((1 + 2 + 4 + 6) / 4)


def test_an_axis_of_length_one_more_or_less() -> None:
    values, column = np.array([1.0, 2.0, 4.0]), np.array([[1.0], [3.0], [3.0]])
    for true, predicted in ((values, column), (column, values), (values[:, None], column)):
        check(losses.mse(true, constant(predicted, "float32")), [0, 1, 1], "float32")


def test_probabilities_of_nothing_and_of_all_have_finite_losses() -> None:
    sure = constant([[1.0, 0.0]])
    for loss, true in (
        (losses.binary_crossentropy, [[0.0, 1.0]]),
        (losses.categorical_crossentropy, [[0.0, 1.0]]),
        (losses.sparse_categorical_crossentropy, [1]),
    ):
        (value,) = loss(true, sure).numpy()
        assert 15 < value < 17


def test_losses_by_name() -> None:
    for name in ("mse", "MSE", "mean_squared_error"):
        assert losses.get(name) is losses.mean_squared_error
    assert isinstance(losses.get("MeanSquaredError"), losses.MeanSquaredError)
    assert isinstance(lookup.as_object("mae"), losses.Loss)
    assert losses.get(None) is None
    with pytest.raises(ValueError, match="Could not interpret loss identifier: foo"):
        losses.get("foo")


def test_a_loss_of_ones_own() -> None:
    class Worst(losses.Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return abs(y_true - y_pred)

    assert Worst().name == "worst"
    check(Worst()(constant([1.0, 5.0]), constant([2.0, 2.0])), 2, "float32")
    with pytest.raises(NotImplementedError, match=r"does not have a `call\(\)` method"):
        losses.Loss().call([1.0], [2.0])


def test_losses_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="Invalid value for argument `reduction`"):
        losses.MeanSquaredError(reduction="foo")
    with pytest.raises(ValueError, match="must have the same shape"):
        losses.categorical_crossentropy(np.ones((6, 4)), constant(NORMED))
    with pytest.raises(ValueError, match="the shape of the predictions without its last axis"):
        losses.sparse_categorical_crossentropy(CLASSES[:3], constant(NORMED))
    with pytest.raises(ValueError, match="Only axis=-1 is currently supported"):
        losses.sparse_categorical_crossentropy(CLASSES, constant(NORMED), axis=0)
    for call in (losses.MeanSquaredError(), losses.huber):
        with pytest.raises(errors.InvalidArgumentError):
            call(np.ones((6, 4)), constant(NORMED))


def test_an_ignored_class_is_not_offered() -> None:
    with pytest.raises(NotImplementedError, match="`ignore_class` is not offered"):
        losses.sparse_categorical_crossentropy([0], constant([[0.5, 0.5]]), ignore_class=0)  # type: ignore[arg-type]
    for made in (losses.SparseCategoricalCrossentropy, keras.metrics.SparseCategoricalCrossentropy):
        with pytest.raises(NotImplementedError, match="`ignore_class` is not offered"):
            made(ignore_class=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int64", "uint8", "uint16", "uint32", "float64", "bool"])
def test_classes_of_every_type(dtype: str) -> None:
    found = losses.sparse_categorical_crossentropy(
        np.array([0, 1], dtype), constant([[0.5, 0.5], [0.75, 0.25]])
    )
    check(found, -np.log([0.5, 0.25]), "float32", 1e-6)


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_losses_of_integers_are_computed_in_them(dtype: str) -> None:
    true, predicted = np.array([[0.7, 2.5]]), constant([[3, 0]], dtype)
    difference = np.array([-3, 2]).astype(dtype)
    check(losses.mse(true, predicted), np.square(difference).mean(keepdims=True), "float32")
    check(losses.mae(true, predicted), abs(difference.astype(float)).mean(keepdims=True), "float32")
    check(losses.MeanSquaredError()(true, predicted), (2.3**2 + 2.5**2) / 2, "float32", 1e-6)


def test_weights_that_broadcast_are_counted_as_often() -> None:
    # Of predictions of rank 1 the loss is one value, which each weight multiplies.
    true, predicted, weights = np.zeros(4), np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 0.0, 2.0, 0.5])
    check(losses.MeanSquaredError()(true, predicted, weights), 7.5 * weights.mean(), "float32")
    check(losses.MeanSquaredError(reduction="sum")(true, predicted, weights), 7.5 * weights.sum(), "float32")


@pytest.mark.parametrize("name", ["binary_crossentropy", "categorical_crossentropy"])
def test_a_cross_entropy_wants_as_many_targets_as_outputs(name: str) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "sigmoid")])
    model.compile("sgd", name)
    with pytest.raises(
        ValueError, match=rf"^{name}: .*labels of shape \(8, 2\), predictions of shape \(8, 3\)$"
    ):
        model.fit(np.ones((8, 4)), np.ones((8, 2)), verbose=0)
