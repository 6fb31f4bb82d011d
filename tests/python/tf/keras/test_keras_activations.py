"""Activations, as layers and by name, beside the same in plain NumPy."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import keras
from allotment.tf.keras import layers
from allotment.tf.ops.array.constants import constant
from support.tf.keras_layers import ROWS
from support.tf.tensors import check


def test_activations_as_layers() -> None:
    check(layers.Activation("tanh")(ROWS), np.tanh(ROWS), "float32")
    check(layers.ReLU()(ROWS), np.maximum(ROWS, 0), "float32")
    leaky = np.minimum(np.where(ROWS > 0, ROWS, 0.1 * ROWS), 0.5)
    check(layers.ReLU(max_value=0.5, negative_slope=0.1)(ROWS), leaky, "float32")
    grown = np.exp(ROWS)
    check(layers.Softmax()(ROWS), grown / grown.sum(1, keepdims=True), "float32", rtol=1e-5)
    check(layers.Softmax(axis=0)(ROWS), grown / grown.sum(0), "float32", rtol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        "elu",
        "exponential",
        "gelu",
        "linear",
        "relu6",
        "selu",
        "sigmoid",
        "silu",
        "softplus",
        "softsign",
        "tanh",
    ],
)
def test_activations_by_name(name: str) -> None:
    x = ROWS.astype(np.float64)
    from math import erf

    wanted = {
        "elu": np.where(x > 0, x, np.exp(x) - 1),
        "exponential": np.exp(x),
        "gelu": x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2,
        "linear": x,
        "relu6": np.clip(x, 0, 6),
        "selu": 1.05070098 * np.where(x > 0, x, 1.67326324 * (np.exp(x) - 1)),
        "sigmoid": 1 / (1 + np.exp(-x)),
        "silu": x / (1 + np.exp(-x)),
        "softplus": np.log1p(np.exp(x)),
        "softsign": x / (1 + abs(x)),
        "tanh": np.tanh(x),
    }[name]
    check(layers.Activation(name)(ROWS), wanted, "float32", rtol=1e-5, atol=1e-6)
    assert keras.activations.get(name) is getattr(keras.activations, name)


def test_a_hard_sigmoid() -> None:
    values = keras.activations.hard_sigmoid(constant([-4.0, -3.0, 0.0, 1.5, 4.0]))
    check(values, [0, 0, 0.5, 0.75, 1], "float32")


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda x: keras.activations.relu(x, threshold=1.0), [0, 0, 0, 2]),
        (lambda x: keras.activations.relu(x, 0.5, 1.5, 1.0), [-1.5, -0.75, -0.25, 1.5]),
        (lambda x: keras.activations.elu(x, alpha=2.0), [2 * np.expm1(-2.0), 2 * np.expm1(-0.5), 0.5, 2]),
        (lambda x: keras.activations.leaky_relu(x, negative_slope=0.5), [-1, -0.25, 0.5, 2]),
        (
            lambda x: layers.Softmax(axis=(0, 1))(x[None]),
            np.exp([[-2, -0.5, 0.5, 2]]) / np.exp([-2, -0.5, 0.5, 2]).sum(),
        ),
    ],
)
def test_arguments_of_activations(call: Any, wanted: Any) -> None:
    check(call(constant([-2.0, -0.5, 0.5, 2.0])), wanted, "float32", 1e-6)


def test_activations_of_integers_become_floats_where_they_have_fractions() -> None:
    whole = constant([0, 1])
    check(keras.activations.tanh(whole), np.tanh([0, 1]), "float32", 1e-6)
    check(keras.activations.exponential(whole), np.exp([0, 1]), "float32", 1e-6)
    check(keras.activations.relu(whole, max_value=1.5), [0, 1], "int32")
