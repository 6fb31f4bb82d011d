"""Configurations of layers and models of a program, masks of softmax, keywords that ``call`` does not have."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import keras
from allotment.tf.keras import layers
from allotment.tf.names.missing_names import NotOfferedError
from allotment.tf.ops.array.constants import constant


class Scaled(layers.Layer):
    """A layer with a ``get_config`` of its own, as guides show it."""

    def __init__(self, factor: float = 3.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, inputs: Any) -> Any:
        return inputs * self.factor

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "factor": self.factor}


class Plain(layers.Layer):
    """A layer without a ``get_config``."""

    def __init__(self, units: Any = 3, more: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units, self.more = units, more


def policy(dtype: str) -> dict[str, Any]:
    return {
        "module": "keras",
        "class_name": "DTypePolicy",
        "config": {"name": dtype},
        "registered_name": None,
    }


def test_a_layer_of_ones_own_extends_the_configuration() -> None:
    # TensorFlow 2.21 returns the same dictionary.
    layer = Scaled(4.0, name="scaled", dtype="float64", activity_regularizer="l2")
    regularizer = {
        "module": "keras.regularizers",
        "class_name": "L2",
        "config": {"l2": 0.01},
        "registered_name": None,
    }
    assert layer.get_config() == {
        "name": "scaled",
        "trainable": True,
        "dtype": policy("float64"),
        "activity_regularizer": regularizer,
        "factor": 4.0,
    }
    for again in (Scaled.from_config(layer.get_config()), Scaled(**layer.get_config())):
        assert (again.name, again.factor, again.dtype) == ("scaled", 4.0, "float64")
        assert again.activity_regularizer.get_config() == {"l2": 0.01}


def test_the_arguments_are_the_configuration_of_a_layer_without_one() -> None:
    layer = Plain(7, name="plain", trainable=False)
    found = layer.get_config()
    assert found == {
        "name": "plain",
        "units": 7,
        "more": None,
        "trainable": False,
        "dtype": policy("float32"),
    }
    assert next(iter(found)) == "name"
    again = Plain.from_config(found)
    assert (again.units, again.trainable) == (7, False)
    with pytest.raises(NotImplementedError, match="Plain was created by passing non-serializable argument"):
        Plain([layers.Dense(2)]).get_config()


def test_a_model_of_ones_own_extends_the_configuration() -> None:
    class Own(keras.Model):
        def get_config(self) -> dict[str, Any]:
            return super().get_config()

    assert Own(name="own").get_config() == {"name": "own", "trainable": True, "dtype": policy("float32")}


def test_a_configuration_with_other_arguments_is_refused() -> None:
    with pytest.raises(TypeError, match="Error when deserializing class 'Scaled' using config="):
        Scaled.from_config({"scale": 1.0})


def test_layers_of_the_package_have_no_configuration() -> None:
    class Wide(layers.Dense):
        def get_config(self) -> dict[str, Any]:
            return super().get_config()

    for owner in (layers.Dense(2), layers.Softmax, keras.Sequential):
        assert not hasattr(owner, "get_config")
        assert not hasattr(owner, "from_config")
    with pytest.raises(NotOfferedError, match=r"^Dense.get_config is not offered. Available: ") as raised:
        Wide(2).get_config()
    names = str(raised.value).partition("Available: ")[2].rstrip(".").split(", ")
    assert "get_config" not in names
    assert not {"casts_inputs", "keeps_dtype", "makes_variables", "sample_shape"} & set(names)


VALUES = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)


@pytest.mark.parametrize(
    ("mask", "axis"),
    [([[True, False, True], [False, False, False]], -1), ([0.0, 1.0, 1.0], (0, 1)), ([[True], [False]], 0)],
)
def test_softmax_with_a_mask(mask: Any, axis: Any) -> None:
    counts = np.broadcast_to(np.asarray(mask) > 0.5, VALUES.shape)
    shares = np.where(counts, np.exp(VALUES), 0)
    total = shares.sum(axis, keepdims=True)
    expected = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
    found = layers.Softmax(axis)(constant(VALUES), mask=constant(mask))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


def test_softmax_with_a_mask_of_another_shape() -> None:
    for mask in (np.ones((1, 1, 3)), np.ones((4,))):
        with pytest.raises(ValueError, match="The `mask` must be broadcastable to `inputs`"):
            layers.Softmax()(constant(VALUES), mask=constant(mask))


def test_a_keyword_that_call_does_not_have_is_refused_in_the_name_of_the_class() -> None:
    for layer in (layers.ReLU(), layers.MaxPooling2D(), layers.Dense(2)):
        with pytest.raises(
            TypeError, match=rf"^{type(layer).__name__}.call\(\) got an unexpected keyword .*'mask'"
        ):
            layer(constant(np.ones((1, 2, 2, 1), np.float32)), mask=None)


def test_an_embedding_counts_negative_indices_from_the_end() -> None:
    table = np.arange(6.0).reshape(3, 2)
    layer = layers.Embedding(3, 2, embeddings_initializer=keras.initializers.Constant(table))
    assert (layer(np.array([[-1, 0, -3]])).numpy() == table[[[-1, 0, -3]]]).all()
    for index in (3, -4):
        with pytest.raises(Exception, match=r"indices\[0\] = -?\d is not in \[0, 3\)"):
            layer(np.array([index]))
