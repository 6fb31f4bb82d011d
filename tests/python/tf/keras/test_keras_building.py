"""Building a model records the program's ``call`` in a graph that never runs: no state changes, no value is made up.

Longer than 300 lines: each way of building is checked with the same layers, which are at its top.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf

keras = tf.keras
layers = tf.keras.layers


class Counter(layers.Layer):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = tf.Variable(0.0, trainable=False)

    def call(self, inputs: Any) -> Any:
        self.calls.assign_add(1.0)
        return inputs


class RunningMean(layers.Layer):
    """Subtracts the mean of all samples that it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.total = tf.Variable(tf.zeros(2), trainable=False)
        self.count = tf.Variable(0.0, trainable=False)

    def call(self, inputs: Any) -> Any:
        self.total.assign_add(tf.reduce_sum(inputs, 0))
        self.count.assign_add(tf.cast(tf.shape(inputs)[0], tf.float32))
        return inputs - self.total / self.count


class MovingAverage(layers.Layer):
    """Multiplies by a moving average of the samples."""

    def __init__(self) -> None:
        super().__init__()
        self.average = tf.Variable(tf.ones(2), trainable=False)

    def call(self, inputs: Any) -> Any:
        self.average.assign(0.9 * self.average + 0.1 * tf.reduce_mean(inputs, 0))
        return inputs * self.average


class Stepped(keras.Model):
    """Multiplies by the number of its calls before a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.step = tf.Variable(1.0, trainable=False)
        self.dense = layers.Dense(1, kernel_initializer="ones")
        self.python_calls = 0

    def call(self, inputs: Any) -> Any:
        self.python_calls += 1
        self.step.assign_add(1.0)
        return self.dense(inputs * self.step)


def model_of(layer: Any) -> Any:
    return keras.Sequential([keras.Input((2,)), layer])


def test_building_changes_no_variable() -> None:
    counter, mean, average = Counter(), RunningMean(), MovingAverage()
    for layer in (counter, mean, average):
        assert model_of(layer).output_shape == (None, 2)
    assert float(counter.calls) == 0
    assert (mean.total.numpy() == 0).all()
    assert float(mean.count) == 0
    assert (average.average.numpy() == 1).all()
    samples = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert mean(samples).numpy().tolist() == [[-1.0, -1.0], [1.0, 1.0]]
    assert float(mean.count) == 2
    counter(samples)
    assert float(counter.calls) == 1


def test_scattered_and_partial_assignments_have_no_effect() -> None:
    class Scattering(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.kept = tf.Variable([1.0, 2.0, 3.0], trainable=False)

        def call(self, inputs: Any) -> Any:
            self.kept.scatter_nd_update([[0]], [9.0])
            self.kept.scatter_nd_add([[1]], tf.reduce_sum(inputs, keepdims=True)[0])
            self.kept[2:].assign([5.0])
            self.kept.assign_sub(tf.ones(3))
            return inputs

    layer = Scattering()
    model_of(layer)
    assert layer.kept.numpy().tolist() == [1.0, 2.0, 3.0]


def test_state_is_as_before_after_a_call_that_fails() -> None:
    class Failing(Counter):
        def call(self, inputs: Any) -> Any:
            super().call(inputs)
            raise OSError("no such file")

    layer = Failing()
    with tf.GradientTape() as tape:
        with pytest.raises(OSError, match="no such file"):
            model_of(layer)
        variable = tf.Variable(3.0)
        square = variable * variable
    assert float(layer.calls) == 0
    # Eager execution, the tape and the strategy are in force again.
    assert float(tape.gradient(square, variable)) == 6.0
    assert [each.name for each in tape.watched_variables()] == [variable.name]


def test_random_numbers_are_those_without_a_model() -> None:
    class Noisy(layers.Layer):
        def __init__(self, generator: Any) -> None:
            super().__init__()
            self.generator = generator
            self.dropout = layers.Dropout(0.5, seed=3)

        def call(self, inputs: Any) -> Any:
            noise = tf.random.normal(tf.shape(inputs)) + self.generator.normal(tf.shape(inputs))
            return self.dropout(inputs + noise, training=True)

    def numbers(build: bool) -> list[Any]:
        tf.random.set_seed(1)
        layer = Noisy(tf.random.Generator.from_seed(2))
        if build:
            model_of(layer)
        dropped = layer.dropout(tf.ones((4, 4)), training=True)
        return [tf.random.normal((3,)).numpy(), layer.generator.normal((3,)).numpy(), dropped.numpy()]

    for built, plain in zip(numbers(True), numbers(False), strict=True):
        assert np.array_equal(built, plain)


def test_fit_of_a_subclass_makes_no_extra_step() -> None:
    model = Stepped()
    model.compile(keras.optimizers.SGD(0.001), "mse", run_eagerly=True)
    samples = np.ones((4, 3), np.float32)
    history = model.fit(samples, samples[:, :1], batch_size=2, verbose=0)
    assert history.history["loss"] == [pytest.approx(42.998046875)]  # TensorFlow's
    assert float(model.step) == 3
    assert model.python_calls == 2


def test_build_of_a_subclass_does_not_call_it() -> None:
    model = Stepped()
    with pytest.warns(UserWarning, match="does not have a `build\\(\\)` method implemented"):
        model.build((None, 3))
    assert model.built
    assert model.python_calls == 0
    assert float(model.step) == 1
    assert model.dense.weights == []
    model(tf.ones((2, 3)))
    assert len(model.dense.weights) == 2


class _AddsTable(layers.Layer):
    def call(self, inputs: Any) -> Any:
        return inputs + tf.reshape(tf.range(8.0), (4, 2))


class _ChecksPositive(layers.Layer):
    def call(self, inputs: Any) -> Any:
        tf.debugging.assert_positive(inputs)
        return inputs


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (_ChecksPositive, (None, 2)),
        (_AddsTable, (4, 2)),
        (lambda: layers.Lambda(lambda t: tf.reduce_sum(tf.reshape(t, [-1, 4, 2]), 1)), (None, 2)),
        (lambda: layers.Lambda(lambda t: tf.map_fn(lambda row: tf.concat([row, row], 0), t)), (None, 4)),
        (lambda: layers.Lambda(lambda t: tf.scan(lambda sums, row: sums + row, t)), (None, 2)),
        (lambda: layers.Lambda(lambda t: tf.cond(t[0, 0] > 0, lambda: t, lambda: t[:, :1])), (None, None)),
        (
            lambda: layers.Lambda(
                lambda t: tf.while_loop(
                    lambda i, _: i < tf.shape(t)[0], lambda i, h: (i + 1, h * 2.0), [tf.constant(0), t]
                )[1]
            ),
            (None, 2),
        ),
        (
            lambda: layers.Lambda(
                lambda t: tf.switch_case(tf.cast(t[0, 0], tf.int32), [lambda: t, lambda: t + 1.0])
            ),
            (None, 2),
        ),
    ],
)
def test_legal_models_build(make: Callable[[], Any], shape: tuple[Any, ...]) -> None:
    assert model_of(make()).output_shape == shape


def test_call_sees_the_shape_of_the_input() -> None:
    seen: list[Any] = []

    class Looking(layers.Layer):
        def call(self, inputs: Any) -> Any:
            seen.append((tuple(inputs.shape), inputs.dtype))
            return inputs

    model_of(Looking())
    assert seen == [((None, 2), tf.float32)]


def test_a_call_that_decides_by_values_is_refused() -> None:
    class Choosing(layers.Layer):
        def call(self, inputs: Any) -> Any:
            return inputs if tf.reduce_sum(inputs) > 0 else -inputs

    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        model_of(Choosing())
    assert Choosing()(tf.constant([1.0])).numpy() == [1.0]


def test_sublayers_are_built_by_call_even_with_compute_output_shape() -> None:
    class Block(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = layers.Dense(4), layers.Dense(5)

        def call(self, inputs: Any) -> Any:
            return self.second(tf.nn.relu(self.first(inputs)))

        def compute_output_shape(self, input_shape: Any) -> Any:
            return (input_shape[0], 5)

    model = model_of(Block())
    assert [tuple(each.shape) for each in model.weights] == [(2, 4), (4,), (4, 5), (5,)]


def test_gradients_losses_and_metrics_inside_of_call() -> None:
    class Full(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(4)
            self.mean = keras.metrics.Mean()

        def call(self, inputs: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                outputs = self.dense(inputs)
            self.mean.update_state(outputs)
            self.add_loss(keras.losses.MeanSquaredError()(outputs, outputs))
            return tape.gradient(outputs, inputs) * 2.0

    layer = Full()
    assert model_of(layer).output_shape == (None, 2)
    assert layer.losses == []
    assert float(layer.mean.result()) == 0


IMAGE, SEQUENCE, OPEN = (None, 6, 6, 2), (None, 4, 6), (None, None, 6)


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: layers.Dense(3), SEQUENCE),
        (lambda: layers.Dense(3), OPEN),
        (lambda: layers.LayerNormalization(), SEQUENCE),
        (lambda: layers.LayerNormalization(axis=(1, 2)), SEQUENCE),
        (lambda: layers.BatchNormalization(), SEQUENCE),
        (lambda: layers.BatchNormalization(axis=1), SEQUENCE),
        (lambda: layers.Conv2D(3, 2), IMAGE),
        (lambda: layers.Conv2D(3, 2, padding="same", strides=2), IMAGE),
        (lambda: layers.MaxPooling2D(), IMAGE),
        (lambda: layers.AveragePooling2D(2, padding="same"), IMAGE),
        (lambda: layers.GlobalAveragePooling2D(), IMAGE),
        (lambda: layers.Flatten(), IMAGE),
        (lambda: layers.Flatten(), OPEN),
        (lambda: layers.Flatten(data_format="channels_first"), IMAGE),
        (lambda: layers.Reshape((-1, 2)), IMAGE),
        (lambda: layers.Reshape((-1, 2)), OPEN),
        (lambda: layers.Reshape((8, 9)), IMAGE),
        (lambda: layers.Softmax(axis=(1, 2)), SEQUENCE),
        (lambda: layers.ReLU(max_value=6.0), SEQUENCE),
        (lambda: layers.Rescaling(2.0), SEQUENCE),
        (lambda: layers.Activation("elu"), SEQUENCE),
        (lambda: layers.Dropout(0.5), SEQUENCE),
    ],
)
@pytest.mark.parametrize("training", [False, True])
def test_traced_layers_have_the_shapes_that_they_compute(
    make: Callable[[], Any], shape: tuple[Any, ...], training: bool
) -> None:
    layer = make()

    class Around(layers.Layer):
        def call(self, inputs: Any) -> Any:
            return layer(inputs, training=training)

    traced = Around()(keras.Input(batch_shape=shape)).shape
    assert traced == layer.compute_output_shape(shape)
