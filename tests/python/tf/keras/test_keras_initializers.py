"""First values: decided by a seed, on each call the same."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import keras
from allotment.tf import random as tf_random
from allotment.tf.keras import initializers, layers

SEEDED: dict[str, Any] = {
    "RandomNormal": initializers.RandomNormal,
    "RandomUniform": initializers.RandomUniform,
    "TruncatedNormal": initializers.TruncatedNormal,
    "VarianceScaling": initializers.VarianceScaling,
    "GlorotUniform": initializers.GlorotUniform,
    "HeNormal": initializers.HeNormal,
}


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_gives_the_same_values_on_each_call_and_in_each_object(name: str) -> None:
    make = SEEDED[name]
    one = make(seed=7)
    first = one((30, 20)).numpy()
    for other in (one((30, 20)), make(seed=7)((30, 20)), type(one)(**one.get_config())((30, 20))):
        np.testing.assert_array_equal(other.numpy(), first)
    assert not np.array_equal(make(seed=8)((30, 20)).numpy(), first)
    unseeded = make()
    assert not np.array_equal(unseeded((30, 20)).numpy(), unseeded((30, 20)).numpy())
    tf_random.set_seed(3)
    drawn = make()((30, 20)).numpy()
    tf_random.set_seed(3)
    np.testing.assert_array_equal(make()((30, 20)).numpy(), drawn)


def test_layers_with_one_seed_start_alike() -> None:
    one, other = (layers.Dense(4, kernel_initializer=initializers.HeUniform(seed=1)) for _ in range(2))
    for each in (one, other):
        each.build((None, 3))
    np.testing.assert_array_equal(one.kernel.numpy(), other.kernel.numpy())


def test_values_are_spread_as_asked_for() -> None:
    shape = (200, 300)
    normal = initializers.RandomNormal(2.0, 0.5, seed=1)(shape).numpy()
    np.testing.assert_allclose([normal.mean(), normal.std()], [2, 0.5], atol=0.01)
    cut = initializers.TruncatedNormal(2.0, 0.5, seed=1)(shape).numpy()
    assert abs(cut - 2).max() <= 1
    # The standard deviation of a normal distribution that is cut at two of them.
    np.testing.assert_allclose([cut.mean(), cut.std()], [2, 0.5 * 0.8796256610342398], atol=0.01)
    flat = initializers.RandomUniform(-1, 3, seed=1)(shape).numpy()
    assert -1 <= flat.min() < -0.99
    assert 2.99 < flat.max() <= 3
    np.testing.assert_allclose(flat.mean(), 1, atol=0.02)


def test_names_of_initializers() -> None:
    for name in ("truncated_normal", "TruncatedNormal"):
        assert type(initializers.get(name)) is initializers.TruncatedNormal
    assert type(initializers.get("uniform")) is initializers.RandomUniform
    assert type(keras.initializers.get("normal")) is initializers.RandomNormal
    with pytest.raises(ValueError, match=r"identifier: orthogonal. Available: constant, .*, zeros\."):
        layers.Dense(1, kernel_initializer="orthogonal")


def test_values_are_broadcast_to_the_shape_in_single_precision_unless_asked() -> None:
    np.testing.assert_array_equal(initializers.Constant([1, 2])((2, 2)).numpy(), [[1, 2], [1, 2]])
    assert initializers.Constant(2)((2,)).dtype.name == "float32"
    assert initializers.Ones()((1,), dtype="bool").numpy()[0]
    assert initializers.Zeros()((), dtype=None).dtype.name == "float32"
    with pytest.raises(TypeError, match="random initializers return floats"):
        initializers.HeNormal()((2,), dtype="int32")


def test_a_constant_with_more_axes_than_the_shape() -> None:
    # As in Keras, where it is a product.
    assert np.asarray(keras.initializers.Constant(np.ones(3))(())).tolist() == [1, 1, 1]
