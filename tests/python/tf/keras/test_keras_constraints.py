"""Constraints, casts of inputs, layers that a model has twice, and calls that lack an argument."""

from typing import Any

import numpy as np
import pytest

import allotment.tf as tf

keras: Any = tf.keras
L: Any = keras.layers
W = np.array([[3.0, -4.0, 0.0], [4.0, 0.0, 0.0]], "float32")


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("non_neg", np.maximum(W, 0)),
        ("NonNeg", np.maximum(W, 0)),
        ("unit_norm", [[0.6, -1, 0], [0.8, 0, 0]]),
        ("max_norm", [[1.2, -2, 0], [1.6, 0, 0]]),
        (keras.constraints.MaxNorm(4.5, axis=1), [[2.7, -3.6, 0], [4, 0, 0]]),
        # Half of the way from 5 and 4 to 3.
        (keras.constraints.MinMaxNorm(1.0, 3.0, rate=0.5), [[2.4, -3.5, 0], [3.2, 0, 0]]),
        (lambda w: w * 2, W * 2),
    ],
)
def test_constraints_project_the_weights_after_each_update(constraint: Any, expected: Any) -> None:
    model = keras.Sequential([keras.Input((2,)), L.Dense(3, use_bias=False, kernel_constraint=constraint)])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    model.set_weights([W])
    model.fit(np.zeros((1, 2)), np.zeros((1, 3)), verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], expected, rtol=1e-5, atol=1e-6)


def test_all_layers_and_add_weight_take_constraints_by_name() -> None:
    class Own(L.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.w = self.add_weight(shape=(1,), constraint="non_neg")

    made = Own()
    made.build(None)
    normalized = L.LayerNormalization(beta_constraint="max_norm", gamma_constraint=keras.constraints.NonNeg)
    for layer, shape in (
        (L.Conv2D(1, 1, kernel_constraint="unit_norm", bias_constraint="max_norm"), (1, 2, 2, 1)),
        (L.BatchNormalization(beta_constraint="non_neg", gamma_constraint="non_neg"), (1, 2)),
        (L.Embedding(2, 2, embeddings_constraint="min_max_norm"), (1,)),
        (normalized, (1, 2)),
    ):
        layer.build(shape)
        assert all(isinstance(w.constraint, keras.constraints.Constraint) for w in layer.trainable_weights)
    assert isinstance(made.w.constraint, keras.constraints.NonNeg)
    with pytest.raises(ValueError, match=r"Could not interpret constraint identifier: small.*non_neg"):
        L.Dense(1, kernel_constraint="small")


def test_constraints_have_a_configuration() -> None:
    made = keras.constraints.MinMaxNorm(0.5, axis=1)
    assert made.get_config() == {"min_value": 0.5, "max_value": 1.0, "rate": 1.0, "axis": 1}
    again = keras.constraints.get({"class_name": "MinMaxNorm", "config": made.get_config()})
    np.testing.assert_array_equal(again(W), made(W))
    assert keras.constraints.get(None) is None


def test_a_layer_without_autocast_keeps_the_type_of_its_input() -> None:
    x = tf.constant([[1.0, 2.0]], tf.float64)
    for layer in (L.Activation("relu", autocast=False), L.Dense(2, autocast=False)):
        assert layer(x).dtype is tf.float64
        assert not layer.autocast
    assert L.Activation("relu")(x).dtype is tf.float32


def test_arguments_behind_the_first_are_cast_as_well() -> None:
    class Sum(L.Layer):  # type: ignore[misc]
        def call(self, a: Any, b: Any, c: Any = None) -> Any:
            return a + b + c

    double = np.ones((1, 2))
    assert Sum()(tf.ones((1, 2)), tf.constant(double), c=double).dtype is tf.float32


def test_a_model_may_have_a_layer_twice() -> None:
    layer = L.Dense(2)
    model = keras.Sequential([keras.Input((2,)), layer, layer])
    kernel = np.array([[1.0, 2.0], [3.0, 4.0]])
    model.set_weights([kernel, np.zeros(2)])
    assert (len(model.layers), len(model.weights), model.count_params()) == (2, 2, 6)
    np.testing.assert_allclose(model(tf.ones((1, 2))), np.ones((1, 2)) @ kernel @ kernel)
    # Another model calls the layer in between.
    keras.Sequential([keras.Input((2,)), layer, L.Dense(5)])
    model.pop()
    assert model.output_shape == (None, 2)
    np.testing.assert_allclose(model(tf.ones((1, 2))), np.ones((1, 2)) @ kernel)
    with pytest.raises(ValueError, match="unique names"):
        keras.Sequential([L.Dense(1, name="a"), L.Dense(1, name="a")])


def test_a_model_without_layers_computes_nothing() -> None:
    x = np.ones((1, 2), "float32")
    for model in (keras.Sequential(), keras.Sequential([keras.Input((2,))])):
        for use in (model, model.predict, lambda x, model=model: model.build(x.shape)):
            with pytest.raises(ValueError, match=r"has no layers.*add\(layer\)"):
                use(tf.constant(x) if use is model else x)
        with pytest.raises(AttributeError, match="no defined input shape"):
            _ = model.output_shape


def test_a_training_argument_without_a_default_has_to_be_given() -> None:
    class Twice(L.Layer):  # type: ignore[misc]
        def call(self, x: Any, training: bool) -> Any:
            return x * 2 if training else x

    x = tf.ones((1, 1))
    assert float(Twice()(x, training=True)[0, 0]) == 2
    with pytest.raises(TypeError, match="`training` without a default"):
        Twice()(x)
    with pytest.raises(ValueError, match="several without a default: x, training"):
        keras.Sequential([Twice()])
    with pytest.raises(TypeError, match="called without an input"):
        L.Dense(1)()


def test_optimizers_ignore_decay_with_a_warning() -> None:
    for kind in (keras.optimizers.SGD, keras.optimizers.Adam, keras.optimizers.RMSprop):
        with pytest.warns(UserWarning, match="ignores it: pass a schedule"):
            kind(decay=0.1)
        assert kind(decay=None)
        with pytest.raises(ValueError, match="not recognized"):
            kind(lr=0.1)
