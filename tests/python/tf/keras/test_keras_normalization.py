"""Layers that normalize, beside the same in plain NumPy."""

from typing import Any

import numpy as np
import pytest

from allotment.tf.keras import layers
from allotment.tf.ops.array.constants import constant
from support.tf.keras_layers import IMAGES, random_weights
from support.tf.tensors import check


def test_batch_normalisation_in_training_and_afterwards() -> None:
    layer = layers.BatchNormalization(momentum=0.9, epsilon=0.01)
    layer.build(IMAGES.shape)
    gamma, beta, mean, variance = random_weights(layer)
    axes = (0, 1, 2)
    own_mean, own_variance = IMAGES.mean(axes), IMAGES.var(axes)
    expected = (IMAGES - own_mean) / np.sqrt(own_variance + 0.01) * gamma + beta
    check(layer(IMAGES, training=True), expected, "float32", rtol=1e-4, atol=1e-5)
    mean, variance = 0.9 * mean + 0.1 * own_mean, 0.9 * variance + 0.1 * own_variance
    np.testing.assert_allclose(layer.moving_mean.numpy(), mean, rtol=1e-5)
    np.testing.assert_allclose(layer.moving_variance.numpy(), variance, rtol=1e-5)
    expected = (IMAGES - mean) / np.sqrt(variance + 0.01) * gamma + beta
    for call in (layer(IMAGES), layer(IMAGES, training=False)):
        check(call, expected, "float32", rtol=1e-4, atol=1e-5)
    layer.trainable = False
    check(layer(IMAGES, training=True), expected, "float32", rtol=1e-4, atol=1e-5)
    assert layer.trainable_weights == []
    assert len(layer.non_trainable_weights) == 4


def test_batch_normalisation_of_other_axes_and_with_less() -> None:
    layer = layers.BatchNormalization(axis=1, center=False)
    layer.build(IMAGES.shape)
    gamma = random_weights(layer)[0][:, None, None]
    mean, variance = (f((0, 2, 3), keepdims=True) for f in (IMAGES.mean, IMAGES.var))
    expected = (IMAGES - mean) / np.sqrt(variance + 0.001) * gamma
    check(layer(IMAGES, training=True), expected, "float32", rtol=1e-4, atol=1e-5)
    assert [each.name.rpartition("/")[2] for each in layer.weights] == [
        "gamma:0",
        "moving_mean:0",
        "moving_variance:0",
    ]


@pytest.mark.parametrize("axis", [-1, [1, 3], (2, 3)])
def test_layer_normalisation(axis: Any) -> None:
    layer = layers.LayerNormalization(axis=axis)
    layer.build(IMAGES.shape)
    axes = (3,) if axis == -1 else tuple(axis)
    shape = [length if at in axes else 1 for at, length in enumerate(IMAGES.shape)]
    gamma, beta = (each.reshape(shape) for each in random_weights(layer))
    mean, variance = (f(axes, keepdims=True) for f in (IMAGES.mean, IMAGES.var))
    expected = (IMAGES - mean) / np.sqrt(variance + 0.001) * gamma + beta
    check(layer(IMAGES), expected, "float32", rtol=1e-4, atol=1e-5)


def test_normalized_layers_have_the_precision_of_their_input() -> None:
    layer = layers.LayerNormalization()
    found = layer(constant([[0.0, 1.0, 4.0]], "float16")).numpy()
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, found.astype(np.float16))


def test_integers_are_normalized_in_single_precision() -> None:
    layer = layers.BatchNormalization(dtype="float64")
    found = layer(np.arange(12, dtype=np.uint8).reshape(4, 3), training=True)
    wanted = np.float32(3) / np.sqrt(np.float32(11.25) + np.float32(1e-3))
    np.testing.assert_allclose(found[3, 0], 1.5 * wanted, rtol=1e-6)
    assert found.dtype.name == "float64"
    # What is remembered is rounded to it, too.
    assert np.asarray(layer.moving_mean).tolist() == [
        float(np.float32(each) * np.float32(0.01)) for each in (4.5, 5.5, 6.5)
    ]
