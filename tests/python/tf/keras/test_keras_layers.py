"""Layers: what they compute beside the same in plain NumPy, the shapes they tell, and what they refuse."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import keras
from allotment.tf.keras import layers
from allotment.tf.ops.array.constants import constant
from allotment.tf.tensors.tensor_shape import TensorShape
from support.tf.keras_layers import IMAGES, ROWS, random_weights
from support.tf.tensors import check


def test_a_dense_layer() -> None:
    layer = layers.Dense(3, activation="relu", name="dense")
    layer.build((None, 6))
    kernel, bias = random_weights(layer)
    check(layer(ROWS), np.maximum(ROWS @ kernel + bias, 0), "float32", rtol=1e-5, atol=1e-6)
    assert [each.name for each in layer.weights] == ["dense/kernel:0", "dense/bias:0"]
    assert layer.count_params() == 6 * 3 + 3


def test_a_dense_layer_works_on_the_last_axis_of_any_rank() -> None:
    layer = layers.Dense(2, use_bias=False)
    layer.build(IMAGES.shape)
    (kernel,) = random_weights(layer)
    check(layer(IMAGES), IMAGES @ kernel, "float32", rtol=1e-5, atol=1e-6)
    assert layer.compute_output_shape((None, 5, 6, 3)) == (None, 5, 6, 2)


def by_windows(images: Any, size: tuple[int, int], stride: int, function: Any) -> Any:
    """A function of each window of images, window by window."""
    down, right = (
        (length - span) // stride + 1 for length, span in zip(images.shape[1:3], size, strict=True)
    )
    return np.stack(
        [
            np.stack(
                [
                    function(images[:, i * stride : i * stride + size[0], j * stride : j * stride + size[1]])
                    for j in range(right)
                ],
                axis=1,
            )
            for i in range(down)
        ],
        axis=1,
    )


def test_convolution_and_pooling() -> None:
    layer = layers.Conv2D(4, (2, 3), strides=2, activation="relu")
    layer.build(IMAGES.shape)
    kernel, bias = random_weights(layer)
    wanted = by_windows(IMAGES, (2, 3), 2, lambda window: np.tensordot(window, kernel, 3))
    check(layer(IMAGES), np.maximum(wanted + bias, 0), "float32", rtol=1e-5, atol=1e-6)
    check(
        layers.MaxPooling2D()(IMAGES),
        by_windows(IMAGES, (2, 2), 2, lambda window: window.max((1, 2))),
        "float32",
    )
    means = by_windows(IMAGES, (3, 2), 1, lambda window: window.mean((1, 2)))
    check(layers.AveragePooling2D((3, 2), strides=1)(IMAGES), means, "float32", rtol=1e-5, atol=1e-6)
    check(layers.GlobalAveragePooling2D()(IMAGES), IMAGES.mean((1, 2)), "float32", rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("padding", ["valid", "same"])
def test_layers_of_images_tell_the_shapes_they_give(padding: str, data_format: str) -> None:
    given: dict[str, Any] = {"padding": padding, "data_format": data_format}
    images = IMAGES if data_format == "channels_last" else IMAGES.transpose(0, 3, 1, 2)
    for layer in (
        layers.Conv2D(6, 3, strides=2, **given),
        layers.Conv2D(6, (1, 2), dilation_rate=2, groups=3, use_bias=False, **given),
        layers.MaxPooling2D(2, **given),
        layers.AveragePooling2D((3, 2), (1, 2), **given),
        layers.GlobalAveragePooling2D(data_format),
        layers.GlobalAveragePooling2D(data_format, keepdims=True),
    ):
        assert layer.compute_output_shape(images.shape) == tuple(layer(images).shape)
        symbolic = layer(keras.Input(images.shape[1:]))
        assert symbolic.shape == (None, *tuple(layer(images).shape)[1:])


def test_shapes_of_layers_whose_input_is_not_known_in_full() -> None:
    x = keras.Input((None, None, 3))
    y = layers.MaxPooling2D()(layers.Conv2D(4, 3)(x))
    assert y.shape == (None, None, None, 4)
    assert layers.GlobalAveragePooling2D()(y).shape == (None, 4)
    assert layers.Flatten()(x).shape == (None, None)
    assert layers.Reshape((-1, 3))(x).shape == (None, None, 3)


def test_flat_and_reshaped() -> None:
    check(layers.Flatten()(IMAGES), IMAGES.reshape(2, -1), "float32")
    check(layers.Reshape((6, -1))(IMAGES), IMAGES.reshape(2, 6, 15), "float32")
    check(layers.Reshape((6, -1))(IMAGES[:0]), np.zeros((0, 6, 15)), "float32")
    whole = layers.Flatten()(constant([[[1, 2]], [[3, 4]]]))
    check(whole, [[1, 2], [3, 4]], "int32")


def test_vectors_for_numbers() -> None:
    layer = layers.Embedding(5, 3)
    numbers = np.array([[0, 4], [2, 2]])
    layer.build(numbers.shape)
    (vectors,) = random_weights(layer)
    check(layer(numbers), vectors[numbers], "float32")
    check(layer(numbers.astype(np.float32)), vectors[numbers], "float32")
    assert layer(keras.Input((2,), dtype="int32")).shape == (None, 2, 3)


def test_dropout_only_in_training_and_the_same_for_the_same_seed() -> None:
    ones = np.ones((50, 40), np.float32)
    one, other = layers.Dropout(0.25, seed=7), layers.Dropout(0.25, seed=7)
    check(one(ones), ones, "float32")
    first, second = one(ones, training=True).numpy(), one(ones, training=True).numpy()
    np.testing.assert_allclose(np.unique(first), [0, 4 / 3], rtol=1e-6)
    # Five standard deviations of 2,000 draws.
    assert abs((first == 0).mean() - 0.25) < 5 * (0.25 * 0.75 / 2000) ** 0.5
    assert (first != second).any()
    np.testing.assert_array_equal(first, other(ones, training=True).numpy())
    whole = layers.Dropout(0.5, noise_shape=(None, 1))(ones, training=True).numpy()
    assert set(map(tuple, whole)) == {(0,) * 40, (2,) * 40}
    check(layers.Dropout(1)(ones, training=True), 0 * ones, "float32")
    assert layers.Dropout(0)(ones, training=True).numpy().all()


def test_sums_and_rows_of_several() -> None:
    check(layers.Add()([ROWS, ROWS[:, :1], ROWS]), 2 * ROWS + ROWS[:, :1], "float32")
    check(layers.Concatenate()([ROWS, ROWS[:, :2]]), np.hstack([ROWS, ROWS[:, :2]]), "float32")
    joined = layers.Concatenate(axis=1)([IMAGES, IMAGES])
    check(joined, np.concatenate([IMAGES, IMAGES], 1), "float32")
    inputs = [keras.Input((3, 1)), keras.Input((1, 4))]
    assert layers.Add()(inputs).shape == (None, 3, 4)
    assert layers.Concatenate(1)([keras.Input((None, 2)), keras.Input((3, 2))]).shape == (None, None, 2)


class Scaled(layers.Layer):
    """Its input times a factor that is trained, and a count that is not."""

    def build(self, input_shape: Any) -> None:
        self.factor = self.add_weight((input_shape[-1],), "ones", name="factor")
        self.count = self.add_weight((), "zeros", dtype="int32", trainable=False, name="count")

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        if training:
            self.count.assign_add(1)
        return inputs * self.factor


def test_a_layer_of_ones_own() -> None:
    layer = Scaled(name="mine")
    assert not layer.built
    check(layer(ROWS), ROWS, "float32")
    layer(ROWS, training=True)
    assert layer.count.numpy() == 1
    assert [each.name for each in layer.trainable_variables] == ["mine/factor:0"]
    assert [each.name for each in layer.non_trainable_variables] == ["mine/count:0"]
    assert layer.count_params() == 7
    layer.trainable = False
    assert layer.trainable_variables == []


def test_a_layer_that_does_not_tell_its_shape_is_tried_out() -> None:
    class Pairs(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.inner = [layers.Dense(2), {"deep": layers.Dense(3)}]

        def call(self, inputs: Any) -> Any:
            return {"a": self.inner[0](inputs), "b": self.inner[1]["deep"](inputs)}  # type: ignore[index,operator]

    layer = Pairs()
    made = layer(keras.Input((None, 5)))
    assert {name: each.shape for name, each in made.items()} == {"a": (None, None, 2), "b": (None, None, 3)}
    assert len(layer.weights) == 4


def test_training_reaches_layers_inside() -> None:
    class Outer(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.scaled = Scaled()

        def call(self, inputs: Any) -> Any:
            return self.scaled(inputs)

    layer = Outer()
    layer(ROWS)
    layer(ROWS, training=True)
    layer(ROWS, training=False)
    assert layer.scaled.count.numpy() == 1


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: layers.Dense(0), "Received an invalid value for `units`, expected a positive integer"),
        (lambda: layers.Dense(2, foo=1), r"Unrecognized keyword arguments passed to Dense: \{'foo': 1\}"),
        (lambda: layers.Dense(2, "foo"), "Could not interpret activation function identifier: foo"),
        (
            lambda: layers.Dense(2, kernel_initializer="foo"),
            "Could not interpret initializer identifier: foo",
        ),
        (lambda: layers.Dense(2)(keras.Input((None,))), "must be fully-defined"),
        (lambda: layers.Dense(2)(3.0), "Only input tensors may be passed as positional arguments"),
        (lambda: layers.Dense(2)([ROWS, ROWS]), r"expects 1 input\(s\), but it received several"),
        (lambda: layers.Dense(2)(constant([1.0])), "expected min_ndim=2, found ndim=1"),
        (lambda: layers.Conv2D(2, 3)(keras.Input((4, 4))), "expected min_ndim=4, found ndim=3"),
        (
            lambda: layers.Conv2D(2, 5)(keras.Input((4, 4, 1))),
            "Computed output size would be zero or negative",
        ),
        (lambda: layers.Conv2D(2, 3, padding="foo"), "The `padding` argument must be one of"),
        (
            lambda: layers.Conv2D(2, (3, 3, 3)),
            "The `kernel_size` argument must be a tuple of 2 positive integers",
        ),
        (lambda: layers.Conv2D(3, 3, groups=2), "must be evenly divisible by the number of groups"),
        (lambda: layers.MaxPooling2D(data_format="foo"), "The `data_format` argument must be one of"),
        (lambda: layers.Reshape((5,))(keras.Input((4,))), "The total size of the tensor must be unchanged"),
        (lambda: layers.Dropout(2), "Expected a float value between 0 and 1. Received: rate=2"),
        (lambda: layers.Add()([keras.Input((3,)), keras.Input((2,))]), r"Received shapes \(3,\) and \(2,\)"),
        (lambda: layers.Add()(keras.Input((3,))), "should be called on a list of inputs"),
        (
            lambda: layers.Concatenate()([keras.Input((3, 2)), keras.Input((2, 2))]),
            "matching shapes except for",
        ),
        (lambda: keras.Input(), "You must pass a `shape` argument"),
        (lambda: keras.Input(3), "Cannot convert 3 to a shape"),
        (lambda: keras.initializers.VarianceScaling(mode="foo"), "Invalid `mode` argument: foo"),
    ],
)
def test_arguments_that_are_of_no_use(make: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()


def test_a_layer_that_forgets_its_base_class() -> None:
    class Forgetful(layers.Layer):
        def __init__(self) -> None:
            self.units = 3

    with pytest.raises(RuntimeError, match=r"forgot to call `super\(\).__init__\(\)`"):
        Forgetful()(ROWS)


@pytest.mark.parametrize("kind", ["glorot", "he", "lecun"])
def test_initializers_whose_spread_depends_on_the_shape(kind: str) -> None:
    shape = (3, 3, 40, 60)
    inputs, outputs = 9 * 40, 9 * 60
    variance = {"glorot": 2 / (inputs + outputs), "he": 2 / inputs, "lecun": 1 / inputs}[kind]
    for distribution in ("uniform", "normal"):
        made = keras.initializers.get(f"{kind}_{distribution}")(shape).numpy()
        assert made.var() == pytest.approx(variance, rel=0.05)
        assert abs(made.mean()) < 5 * (variance / made.size) ** 0.5
        if distribution == "uniform":
            assert abs(made).max() <= (3 * variance) ** 0.5


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_layers_of_variables_compute_integers_in_their_own_type(dtype: str) -> None:
    x = np.array([[1, 0], [1, 1]], dtype)
    dense = layers.Dense(1, kernel_initializer="ones", bias_initializer="ones")
    check(dense(constant(x)), [[2], [3]], "float32")
    check(layers.BatchNormalization(epsilon=0.0)(constant(x)), x, "float32")
    check(layers.GlobalAveragePooling2D()(constant(x[None, :, :, None])), [[0.75]], "float32")
    check(layers.Add()([constant(x), constant([[0.5, 0.5], [0.5, 0.5]])]), x + 0.5, "float32")
    check(layers.Flatten()(constant(x)), x, dtype)
    with pytest.raises(ValueError, match="cast it first"):
        layers.Conv2D(1, 1)(constant(x[None, :, :, None]))


def test_the_length_of_samples_as_input_dim() -> None:
    model = keras.Sequential([layers.Dense(8, input_dim=3), layers.Dense(2)])
    assert [each.shape for each in model.get_weights()] == [(3, 8), (8,), (8, 2), (2,)]


@pytest.mark.parametrize("shape", [(2, 3), [2, 3], TensorShape([2, 3]), (np.int64(2), np.int32(3))])
@pytest.mark.parametrize("initializer", [None, "ones", keras.initializers.Constant(0.5), "he_normal"])
def test_shapes_of_weights(shape: Any, initializer: Any) -> None:
    variable = keras.layers.Layer().add_weight(shape=shape, initializer=initializer)
    assert tuple(variable.shape) == (2, 3)
    with pytest.raises(ValueError, match="Cannot convert 3 to a shape"):
        keras.layers.Layer().add_weight(shape=3)
