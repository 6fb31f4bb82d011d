"""Figures of models whose type has 16 bits: computed in single precision, since sums leave the range of those."""

from typing import Any

import numpy as np

from allotment.tf import keras
from allotment.tf.keras import layers, losses, metrics
from allotment.tf.ops.array.constants import constant


def test_loss_and_metrics_of_a_float16_model_are_numbers_of_single_precision() -> None:
    x = np.random.default_rng(0).standard_normal((4096, 4)).astype(np.float16)
    y = np.full((4096, 1), 900, np.float16)
    model = keras.Sequential([keras.Input((4,), dtype="float16"), layers.Dense(1, dtype="float16")])
    model.compile("sgd", "mse", metrics=["mae"])
    wrong = model.predict(x, verbose=0).astype(np.float64) - 900
    loss, mae = model.evaluate(x, y, batch_size=4096, verbose=0)
    np.testing.assert_allclose(loss, np.mean(wrong**2), rtol=1e-5)
    np.testing.assert_allclose(mae, np.mean(abs(wrong)), rtol=1e-5)


def test_a_wrong_certainty_of_16_bits_costs_no_infinity() -> None:
    found = losses.BinaryCrossentropy()(constant([[0.0]]), constant([[1.0]], "float16"))
    assert found.dtype.name == "float32"
    np.testing.assert_allclose(found.numpy(), -np.log(1 - np.float32(1 - 1e-7)), rtol=1e-5)
    sparse = losses.SparseCategoricalCrossentropy()(constant([0]), constant([[0.0, 1.0]], "float16"))
    np.testing.assert_allclose(sparse.numpy(), -np.log(np.float32(1e-7)), rtol=1e-5)


def test_sums_of_metrics_of_16_bits_leave_their_range() -> None:
    total, mean = metrics.Sum(), metrics.Mean()
    for metric in (total, mean):
        metric.update_state(constant(np.full(5000, 100), "float16"), sample_weight=np.full(5000, 2.0))
    assert float(total.result()) == 1_000_000
    assert float(mean.result()) == 100


def test_a_loss_of_the_programs_own_gets_single_precision() -> None:
    def squares(y_true: Any, y_pred: Any) -> Any:
        return (y_true - y_pred) ** 2

    made = keras.losses.get(squares)
    assert made is squares
    model = keras.Sequential([keras.Input((1,)), layers.Dense(1, dtype="float16", kernel_initializer="ones")])
    model.compile("sgd", squares)
    assert model.evaluate(np.ones((2, 1)), np.full((2, 1), 1001, np.float16), verbose=0) == 1e6


def test_losses_of_double_precision_are_in_single_unless_asked() -> None:
    true, predicted = constant([[0.0]], "float64"), constant([[1 / 3]], "float64")
    assert losses.MeanSquaredError()(true, predicted).dtype.name == "float32"
    found = losses.MeanSquaredError(dtype="float64")(true, predicted)
    assert found.dtype.name == "float64"
    assert float(found) == (1 / 3) ** 2
