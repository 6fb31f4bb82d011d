"""Initializers."""

from typing import Any

import numpy as np
import pytest

from allotment.tf.ops.random import initializers
from allotment.tf.ops.random.seeds import set_seed
from support.tf.tensors import check


def test_constants() -> None:
    check(initializers.zeros_initializer()([2]), [0, 0], "float32")
    check(initializers.zeros_initializer()(shape=[2], dtype="int32"), [0, 0], "int32")
    check(initializers.ones_initializer()([2, 1], "bool"), [[True], [True]], "bool")
    check(initializers.constant_initializer(3)([2]), [3, 3], "int32")
    check(initializers.constant_initializer([1, 2, 3, 4])([2, 2], "float32"), [[1, 2], [3, 4]], "float32")
    with pytest.raises(TypeError, match="2 elements, but got `shape`"):
        initializers.constant_initializer([1, 2])([3])
    with pytest.raises(TypeError, match="Invalid type for initial value"):
        initializers.constant_initializer({})


def test_random_numbers() -> None:
    set_seed(1)
    drawn = initializers.random_uniform_initializer(2.0, 3.0, seed=5)([1000]).numpy()
    assert drawn.min() >= 2
    assert drawn.max() < 3
    drawn = initializers.random_normal_initializer(10.0, 0.5)([1000], "float64").numpy()
    assert abs(drawn.mean() - 10) < 0.1
    assert abs(drawn.std() - 0.5) < 0.1
    assert np.abs(initializers.random_uniform_initializer()([100]).numpy()).max() <= 0.05


def test_types_that_have_no_first_value() -> None:
    for made in (initializers.zeros_initializer(), initializers.ones_initializer()):
        with pytest.raises(ValueError, match="expected to be numeric or boolean"):
            made([2], dtype="string")
    with pytest.raises(ValueError, match="expected to be floating point"):
        initializers.random_normal_initializer()([2], dtype="int32")
    with pytest.raises(TypeError, match="Cannot convert"):
        initializers.random_uniform_initializer()([2], dtype="int32")


@pytest.mark.parametrize(
    "made",
    [
        initializers.zeros_initializer(),
        initializers.constant_initializer([1, 2]),
        initializers.random_uniform_initializer(1.0, 2.0, 3),
        initializers.random_normal_initializer(1.0, 2.0),
    ],
    ids=lambda made: type(made).__name__,
)
def test_configurations_make_equal_ones(made: Any) -> None:
    again = type(made).from_config(made.get_config())
    assert again.get_config() == made.get_config()
    assert vars(again) == vars(made)
