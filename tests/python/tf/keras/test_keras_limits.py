"""What Keras has and this has not, and input that it casts, takes or refuses."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import keras
from allotment.tf.graph.graph import Graph
from allotment.tf.keras import activations, layers, losses, metrics, optimizers
from allotment.tf.names.missing_names import NotOfferedError
from support.devices import run_on_gpus

X = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
Y = X.sum(1, keepdims=True)


def linear() -> keras.Sequential:
    """One dense layer."""
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize("name", ["save", "to_json", "get_config", "from_config", "export"])
def test_methods_that_a_model_has_not_say_which_it_has(name: str) -> None:
    for owner in (linear(), keras.Sequential, *([] if "config" in name else [keras.Model])):
        assert not hasattr(owner, name)
        with pytest.raises(
            NotOfferedError, match=rf"\.{name} is not offered. Available: .*save_weights"
        ) as raised:
            getattr(owner, name)
        assert f" {name}," not in str(raised.value)


def test_methods_that_layers_optimizers_losses_and_metrics_have_not() -> None:
    for owner, name in (
        (layers.Dense(1), "get_config"),
        (layers.Dense(1), "compute_mask"),
        (optimizers.SGD(), "minimize"),
        (losses.MeanSquaredError(), "get_config"),
        (metrics.Mean(), "from_config"),
    ):
        with pytest.raises(
            NotOfferedError, match=rf"{type(owner).__name__}.{name} is not offered. Available: "
        ):
            getattr(owner, name)


def test_a_class_of_the_programs_own_may_have_a_method_that_is_not_offered() -> None:
    class Own(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.supports_masking = True

        def get_config(self) -> dict[str, Any]:
            return {"own": True}

    assert Own().get_config() == {"own": True}
    assert Own().supports_masking is True


def test_names_that_nothing_has_say_which_there_are() -> None:
    for get, name, known in (
        (activations.get, "hardswish", "gelu"),
        (losses.get, "poisson", "huber"),
        (metrics.get, "auc", "accuracy"),
        (optimizers.get, "lion", "adam"),
    ):
        with pytest.raises(ValueError, match=rf"identifier: {name}. Available: .*{known}"):
            get(name)


def test_mish() -> None:
    x = np.linspace(-3, 3, 13)
    np.testing.assert_allclose(
        activations.get("mish")(x).numpy(), x * np.tanh(np.log1p(np.exp(x))), rtol=1e-6
    )


def test_mixed_precision_is_not_offered() -> None:
    for wrong in ("mixed_float16", "mixed_bfloat16"):
        with pytest.raises(
            NotOfferedError, match=f"dtype='{wrong}' is not offered.*float16, float32, float64"
        ):
            layers.Dense(1, dtype=wrong)


def test_a_graph_is_refused_before_anything_else() -> None:
    model = linear()
    before = model.get_weights()
    calls: list[Any] = [
        lambda: model.fit(X, Y, verbose=0),
        lambda: model.evaluate(None, verbose=0),
        lambda: model.predict(X, verbose=0),
        lambda: model.train_on_batch(X, Y),
        lambda: model.test_on_batch(X, Y),
        lambda: model.predict_on_batch(X),
    ]
    with Graph().as_default():
        for call in calls:
            with pytest.raises(NotImplementedError, match="Keras is for eager programs"):
                call()
    np.testing.assert_array_equal(before[0], model.get_weights()[0])


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_whole_numbers_and_truth_values_are_cast_to_the_type_of_the_input(dtype: str) -> None:
    given = np.array([[1, 0, 1], [1, 1, 1], [0, 0, 1]], dtype)
    model = linear()
    np.testing.assert_array_equal(model(given).numpy(), given.astype(np.float32).sum(1, keepdims=True))
    np.testing.assert_array_equal(model.predict(given, verbose=0), model(given).numpy())
    model.fit(given, given[:, :1], verbose=0)
    start = keras.Input((3,))
    functional = keras.Model(start, layers.Dense(1, kernel_initializer="ones")(start))
    np.testing.assert_array_equal(functional(given).numpy(), given.astype(np.float32).sum(1, keepdims=True))


def test_numbers_of_words_stay_what_they_are() -> None:
    model = keras.Sequential([keras.Input((2,)), layers.Embedding(5, 3)])
    words = np.array([[0, 4], [3, 3]])
    np.testing.assert_array_equal(model(words).numpy(), model.get_weights()[0][words])


def test_a_model_without_anything_to_train_is_run_with_a_warning() -> None:
    model = keras.Sequential([keras.Input((3,)), layers.Flatten()])
    model.compile("sgd", "mse", metrics=["mae"])
    with pytest.warns(UserWarning, match="does not have any trainable weights") as told:
        history = model.fit(X, X + 2, epochs=2, verbose=0)
    assert len(told) == 1
    assert told[0].filename == __file__
    np.testing.assert_allclose(history.history["loss"], [4, 4], rtol=1e-6)
    frozen = linear()
    frozen.trainable = False
    before = frozen.get_weights()
    with pytest.warns(UserWarning, match="does not have any trainable weights"):
        frozen.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(before[0], frozen.get_weights()[0])


def test_a_variable_without_a_gradient_is_told_of_at_the_line_of_the_program() -> None:
    class Half(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = layers.Dense(1), layers.Dense(1)

        def call(self, inputs: Any) -> Any:
            self.unused(inputs)
            return self.used(inputs)

    model = Half()
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match="Gradients do not exist for variables") as told:
        model.fit(X, Y, verbose=0)
    assert told[0].filename == __file__


def test_replicas_tell_of_it_once_at_the_line_of_the_program() -> None:
    program = """
import warnings
import numpy as np
import allotment.tf as tf

class Half(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.used, self.unused = tf.keras.layers.Dense(1), tf.keras.layers.Dense(1)

    def call(self, inputs):
        self.unused(inputs)
        return self.used(inputs)

strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
with strategy.scope():
    model = Half()
    model.compile("sgd", "mse")
x = np.ones((4, 2), np.float32)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    model.fit(x, x[:, :1], verbose=0)
assert ["Gradients do not exist" in str(each.message) for each in told] == [True], told
assert (told[0].filename, told[0].lineno) == ("<string>", 22), told[0]
"""
    done = run_on_gpus("2:16MiB", program, OPENBLAS_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr


def test_a_sum_of_batches_of_different_sizes_is_refused() -> None:
    layer = layers.Add()
    np.testing.assert_array_equal(layer([X, X]).numpy(), X + X)
    for other in (X[:1], X[:4]):
        with pytest.raises(ValueError, match="Cannot merge tensors with different batch sizes"):
            layer([X, other])
        with pytest.raises(ValueError, match="Cannot merge tensors with different batch sizes"):
            layers.Add()([X, other])


def test_strides_and_dilation_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="not supported in conjunction with `dilation_rate > 1`"):
        layers.Conv2D(1, 3, strides=2, dilation_rate=2)


def test_a_failed_step_of_replicas_and_data_of_a_strategy_name_the_line_and_the_way() -> None:
    program = """
import numpy as np
import allotment.tf as tf
strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
x = np.ones((4096, 512), np.float32)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((512,)), tf.keras.layers.Dense(2000)])
    model.compile("sgd", "mse")
distributed = strategy.experimental_distribute_dataset([(x, x)])
try:
    model.fit(distributed)
    raise AssertionError
except ValueError as error:
    assert "pass the Dataset itself" in str(error), error
try:
    model.fit(x, np.ones((4096, 2000)), batch_size=4096, verbose=0)
    raise AssertionError
except tf.errors.ResourceExhaustedError as error:
    notes = "\\n".join(error.__notes__)
    assert "in a step of Trainer.fit() in <string>, line 16" in notes, notes
    assert "no line" not in notes, notes
"""
    done = run_on_gpus("2:16MiB", program, OPENBLAS_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
