"""Names of Keras: which there are, what the others say, and what asks for no device."""

import importlib
from types import ModuleType

import numpy as np
import pytest

import allotment
from allotment.tf import keras
from allotment.tf.graph.graph import Graph
from allotment.tf.graph.placeholders import placeholder
from allotment.tf.names.missing_names import public_names
from support.child import run_program
from support.devices import run_on_gpus

MODULES = [
    "activations",
    "backend",
    "callbacks",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "optimizers",
]


def modules() -> list[ModuleType]:
    return [keras, *(importlib.import_module(f"allotment.tf.keras.{name}") for name in MODULES)]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_a_name_that_is_missing_lists_what_there_is(module: ModuleType) -> None:
    for name in module.__all__:
        assert getattr(module, name) is not None
    for name in ("Perceptron", "_private"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as raised:
            getattr(module, name)
        assert not isinstance(raised.value, NotImplementedError)
    path = module.__name__.removeprefix("allotment.tf.")
    for name in public_names("2")[path] - set(module.__all__):
        assert not hasattr(module, name)
        with pytest.raises(NotImplementedError) as refused:
            getattr(module, name)
        text = str(refused.value)
        assert text.startswith(f"{module.__name__}.{name} is not offered. Available: ")
        assert all(f" {name}," in text or f" {name}." in text for name in module.__all__)


def test_what_is_not_there_cannot_be_imported() -> None:
    with pytest.raises(ImportError, match="LSTM"):
        from allotment.tf.keras.layers import LSTM  # type: ignore[attr-defined]  # noqa: F401


def test_documented_names_are_there() -> None:
    assert keras.models.Model is keras.Model
    assert keras.layers.Input is keras.Input
    assert keras.layers.Layer is keras.Layer
    assert keras.layers.MaxPool2D is keras.layers.MaxPooling2D
    assert allotment.tf.keras is keras
    assert "keras" in allotment.tf.__all__


def test_what_is_large_is_imported_when_it_is_asked_for() -> None:
    done = run_program(
        """
        import sys
        import allotment.tf as tf
        assert not any(name.startswith("allotment.tf.keras") for name in sys.modules)
        assert "rich" not in sys.modules
        # NumPy's operations on small arrays are slower where its generators are loaded, too.
        assert "numpy.random" not in sys.modules
        tf.keras.layers.Dense(1)
        assert "allotment.tf.keras" in sys.modules
        assert "rich" not in sys.modules
        try:
            tf.kerass
        except AttributeError as error:
            assert str(error) == "module 'allotment.tf' has no attribute 'kerass'; there is 'keras'"
        """
    )
    assert done.returncode == 0, done.stderr


def test_layers_inputs_and_optimizers_ask_for_no_device() -> None:
    done = run_on_gpus(
        "1:1GiB",
        """
import allotment.tf as tf
k, L = tf.keras, tf.keras.layers
x = k.Input((4, 4, 1))
for layer in (
    L.Dense(2, "relu"), L.Conv2D(2, 3), L.BatchNormalization(), L.LayerNormalization(), L.Dropout(0.5),
    L.Embedding(3, 2), L.Activation("tanh"), L.MaxPooling2D(), L.Add(), k.Sequential([L.Dense(3)]),
):
    assert layer.name
L.Flatten()(L.MaxPooling2D()(x))
k.optimizers.Adam(), k.losses.MeanSquaredError(), k.metrics.Mean(), k.callbacks.EarlyStopping()
k.Sequential([L.Dense(1)]).compile("adam", "mse", metrics=["accuracy"])
# Nothing is settled yet: a setting may still change.
tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("GPU")[0], True)
L.Dense(2)(k.Input((3,)))
try:
    tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("GPU")[0], False)
except RuntimeError:
    pass
else:
    raise AssertionError("a layer that was called has a variable on a device")
""",
    )
    assert done.returncode == 0, done.stderr


def test_layers_do_not_record_in_graphs() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 2])
        with pytest.raises(NotImplementedError, match="Keras is for eager programs"):
            keras.layers.Dense(1)(x)


def test_the_guide_with_two_gpus_and_an_early_optimizer_learns_a_line() -> None:
    done = run_on_gpus(
        "2:1GiB",
        """
import numpy as np
import allotment.tf as tf
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    inputs = tf.keras.layers.Input(shape=(1,))
    predictions = tf.keras.layers.Dense(1)(inputs)
    model = tf.keras.models.Model(inputs=inputs, outputs=predictions)
    model.compile(loss="mse", optimizer=tf.train.GradientDescentOptimizer(learning_rate=0.2))
x = np.linspace(-1, 1, 64, dtype="float32")
model.fit(x, 3 * x + 1, epochs=60, batch_size=16, verbose=0)
assert model.evaluate(x, 3 * x + 1, verbose=0) < 1e-6
slope, offset = model.get_weights()
print(round(float(slope[0, 0]), 3), round(float(offset[0]), 3))
print([copy.device[-5:] for copy in model.weights[0].values])
""",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["3.0 1.0", "['GPU:0', 'GPU:1']"]


def test_values_of_a_model_are_plain_arrays() -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    assert type(model.predict(np.ones((4, 2)), verbose=0)) is np.ndarray
    assert all(type(each) is np.ndarray for each in model.get_weights())
