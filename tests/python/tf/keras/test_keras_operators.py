"""Python's operators between symbolic tensors, and functions, as layers of a functional model."""

import operator
from typing import Any

import numpy as np
import pytest

from allotment.tf import keras
from allotment.tf.keras import layers
from allotment.tf.nn import relu
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.math.real import round as round_
from allotment.tf.tensors.dtype import int32
from support.devices import run_on_gpus

draw = np.random.default_rng(0)
X = draw.uniform(0.5, 2.0, (5, 4)).astype(np.float32)
Z = draw.uniform(0.5, 2.0, (5, 4)).astype(np.float32)
ROW = np.array([1.0, -2.0, 3.0, 4.0], np.float32)


def computed(make: Any) -> np.ndarray[Any, Any]:
    """What a model of two inputs computes, after its shape and type have been compared."""
    x, z = keras.Input((4,)), keras.Input((4,))
    outputs = make(x, z)
    made = keras.Model([x, z], outputs)([constant(X), constant(Z)])
    assert outputs.dtype == made.dtype.name
    assert outputs.ndim == made.ndim
    assert all(told in (None, found) for told, found in zip(outputs.shape, made.shape, strict=True))
    return made.numpy()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, z: x + z,
        lambda x, z: x + 1,
        lambda x, z: 1 + x,
        lambda x, z: x - z * 2,
        lambda x, z: 2 - x,
        lambda x, z: x / z,
        lambda x, z: 1 / x,
        lambda x, z: x // z,
        lambda x, z: 3 % x,
        lambda x, z: x**2,
        lambda x, z: 2**x,
        lambda x, z: -x,
        lambda x, z: abs(x - z),
        lambda x, z: x > z,
        lambda x, z: (x > z) & (x > 1),
        lambda x, z: ~(x <= z),
        lambda x, z: x[:, 0],
        lambda x, z: x[:, 1:3] * z[..., ::2],
        lambda x, z: x + ROW,
        lambda x, z: ROW * x,
        lambda x, z: np.float32(3) * x,
        lambda x, z: x @ np.outer(ROW, ROW),
        lambda x, z: x * x + x,
    ],
)
def test_an_operator_is_part_of_the_model(function: Any) -> None:
    wanted = function(X, Z)
    found = computed(function)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_operators_keep_whole_numbers() -> None:
    start = keras.Input((3,), dtype="int32")
    outputs = start * 2 + 1
    assert outputs.dtype == "int32"
    made = keras.Model(start, outputs)(constant([[1, 2, 3]], int32))
    np.testing.assert_array_equal(made.numpy(), [[3, 5, 7]])


def test_a_model_with_operators_is_trained() -> None:
    start = keras.Input((4,))
    inner = layers.Dense(4, kernel_initializer="ones", name="inner")(start)
    model = keras.Model(start, (inner * inner + start)[:, :1])
    model.compile(keras.optimizers.SGD(0.001), "mse")
    kernel = np.ones((4, 4))
    model.fit(X, np.zeros((5, 1)), batch_size=5, epochs=1, verbose=0)
    made = X.astype(np.float64) @ kernel
    output = (made * made + X)[:, :1]
    slope = np.zeros((5, 4))
    slope[:, :1] = 2 * output / 5 * 2 * made[:, :1]
    kernel -= 0.001 * X.T @ slope
    np.testing.assert_allclose(model.get_layer("inner").get_weights()[0], kernel, rtol=1e-5, atol=1e-6)


def test_symbolic_tensors_are_told_from_each_other_by_what_they_are() -> None:
    one, other = keras.Input((4,)), keras.Input((4,))
    assert one == one
    assert one != other
    assert len({one, other}) == 2


def test_what_stays_without_values() -> None:
    start = keras.Input((4,))
    with pytest.raises(ValueError, match="A KerasTensor cannot be used as input to a TensorFlow function"):
        relu(start)
    with pytest.raises(TypeError, match="cannot be used as a boolean"):
        bool(start > 1)
    # As in Keras, which lets Python find no other way of iterating.
    with pytest.raises(NotImplementedError, match="Iterating over a symbolic KerasTensor"):
        iter(start)
    with pytest.raises(ValueError, match="has no value that could be a number"):
        float(keras.Input(()))


def test_a_function_as_a_layer() -> None:
    def scaled(inputs: Any, factor: float, training: bool | None = None) -> Any:
        return inputs * factor if training else inputs

    layer = layers.Lambda(scaled, arguments={"factor": 3.0})
    np.testing.assert_allclose(layer(constant(X)).numpy(), X)
    np.testing.assert_allclose(layer(constant(X), training=True).numpy(), X * 3, rtol=1e-6)
    np.testing.assert_allclose(computed(lambda x, z: layers.Lambda(operator.itemgetter(0))([x, z])), X)
    assert computed(lambda x, _: layers.Lambda(lambda values: round_(values)[:, :2])(x)).shape == (5, 2)
    with pytest.raises(TypeError, match="takes a function of the inputs, not 3"):
        layers.Lambda(3)  # type: ignore[arg-type]


def test_a_scale() -> None:
    pixels = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3) * 20
    found = layers.Rescaling(1 / 127.5, -1)(constant(pixels))
    assert found.dtype.name == "float32"
    np.testing.assert_allclose(found.numpy(), pixels / 127.5 - 1, rtol=1e-5, atol=1e-6)
    start = keras.Input((2, 2, 3), dtype="uint8")
    outputs = layers.Rescaling([1.0, 2.0, 3.0])(start)
    assert (outputs.shape, outputs.dtype) == ((None, 2, 2, 3), "float32")
    np.testing.assert_allclose(keras.Model(start, outputs)(constant(pixels)).numpy(), pixels * [1.0, 2, 3])


def test_sums_and_rows_of_several_as_functions() -> None:
    np.testing.assert_allclose(computed(lambda x, z: layers.add([x, z, x])), X + Z + X, rtol=1e-6)
    np.testing.assert_allclose(computed(lambda x, z: layers.concatenate([x, z])), np.concatenate([X, Z], 1))
    eager = layers.concatenate([constant(X), constant(Z)], axis=0)
    np.testing.assert_allclose(eager.numpy(), np.concatenate([X, Z]))


def test_operators_on_replicas() -> None:
    done = run_on_gpus(
        "2:64MiB",
        """
import numpy as np
import allotment.tf as tf
k = tf.keras
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    start = k.Input((3,))
    model = k.Model(start, k.layers.Dense(1, kernel_initializer="ones")(start * 2 + np.float32([1, 2, 3])))
x = np.arange(12, dtype=np.float32).reshape(4, 3)
np.testing.assert_allclose(model.predict(x, verbose=0), (x * 2 + [1, 2, 3]).sum(1, keepdims=True))
""",
    )
    assert done.returncode == 0, done.stderr
