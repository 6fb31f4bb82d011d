"""Layers: what they compute beside the same in plain NumPy, the shapes they tell, and what they refuse."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import keras
from allotment.tf.keras import layers
from allotment.tf.ops.array.constants import constant
from allotment.tf.tensors.tensor_shape import TensorShape
from support.tf.tensors import check

draw = np.random.default_rng(0)
IMAGES = draw.standard_normal((2, 5, 6, 3)).astype(np.float32)
ROWS = draw.standard_normal((4, 6)).astype(np.float32)


def random_weights(layer: Any) -> list[Any]:
    """Give a layer other weights than those it starts with, and return them."""
    weights = [draw.uniform(0.2, 1, value.shape).astype(np.float32) for value in layer.get_weights()]
    layer.set_weights(weights)
    return weights


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


def test_normalized_layers_have_the_precision_of_their_input() -> None:
    layer = layers.LayerNormalization()
    found = layer(constant([[0.0, 1.0, 4.0]], "float16")).numpy()
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, found.astype(np.float16))


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
