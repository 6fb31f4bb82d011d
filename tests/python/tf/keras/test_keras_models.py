"""Models: how layers are joined, what models report about themselves, and their variables in files.

Longer than 300 lines: one class after the other of one interface, on the same few models.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allotment.tf import GradientTape, keras
from allotment.tf.keras import layers
from allotment.tf.ops.array.constants import constant
from support.tf.tensors import check

draw = np.random.default_rng(0)
ROWS = draw.standard_normal((4, 6)).astype(np.float32)


@pytest.fixture(autouse=True)
def _first_names() -> None:
    keras.backend.clear_session()


def branched() -> keras.Model:
    """Two inputs, a layer that is called twice, a sum and a joint, two outputs."""
    a, b = keras.Input((6,), name="a"), keras.Input((6,), name="b")
    shared = layers.Dense(3, "tanh", name="shared")
    left, right = shared(a), shared(b)
    both = layers.Add(name="both")([left, right])
    joined = layers.Concatenate(name="joined")([both, a])
    first = layers.Dense(2, name="first")(joined)
    second = layers.Dense(1, name="second")(both)
    model = keras.Model(inputs=[a, b], outputs={"one": first, "two": second}, name="branched")
    assert isinstance(model, keras.Functional)
    return model


def test_a_model_of_inputs_and_outputs_computes_what_lies_between() -> None:
    model = branched()
    kernel, bias = model.get_layer("shared").get_weights()
    left, right = (np.tanh(x @ kernel + bias) for x in (ROWS, ROWS + 1))
    one = model.get_layer("first").get_weights()
    two = model.get_layer("second").get_weights()
    for inputs in ([ROWS, ROWS + 1], (ROWS, ROWS + 1), {"b": ROWS + 1, "a": ROWS}):
        made = model(inputs)
        joined = np.hstack([left + right, ROWS])
        check(made["one"], joined @ one[0] + one[1], "float32", rtol=1e-5, atol=1e-5)
        check(made["two"], (left + right) @ two[0] + two[1], "float32", rtol=1e-5, atol=1e-5)
    assert [each.name for each in model.layers] == ["a", "b", "shared", "both", "joined", "first", "second"]
    assert len(model.weights) == 6
    assert model.count_params() == 21 + 20 + 4


def test_values_are_dropped_after_their_last_use() -> None:
    held: list[Any] = []

    class Watched(layers.Layer):
        def call(self, inputs: Any) -> Any:
            import gc
            import weakref

            gc.collect()
            alive = sum(reference() is not None for reference in held)
            made = inputs + 1.0
            held.append(weakref.ref(made))
            assert alive <= 1
            return made

        def compute_output_shape(self, input_shape: Any) -> Any:
            return input_shape

    x = start = keras.Input((3,))
    for _ in range(5):
        x = Watched()(x)
    check(keras.Model(start, x)(np.zeros((1, 3), np.float32)), np.full((1, 3), 5), "float32")
    assert len(held) == 5


def test_a_model_is_a_layer_of_another() -> None:
    inner = keras.Sequential([keras.Input((6,)), layers.Dense(3)], name="inner")
    x = keras.Input((6,))
    outer = keras.Model(x, layers.Dense(1)(inner(x)))
    check(outer(ROWS), outer.layers[-1](inner(ROWS)), "float32")
    assert len(outer.weights) == 4
    assert outer.layers[1] is inner


def test_a_part_of_a_model_shares_its_layers() -> None:
    x = keras.Input((6,))
    hidden = layers.Dense(3)(x)
    whole = keras.Model(x, layers.Dense(1)(hidden))
    part = keras.Model(x, hidden)
    part.set_weights([value + 1 for value in part.get_weights()])
    check(part(ROWS), whole.layers[1](ROWS), "float32")
    assert part.weights[0] is whole.weights[0]


def test_axes_of_length_one_are_added_and_dropped_as_the_input_has_them() -> None:
    x = keras.Input((1,))
    model = keras.Model(x, layers.Dense(1)(x))
    flat = np.arange(3, dtype=np.float32)
    check(model(flat), model(flat[:, None]), "float32")
    check(model(flat[:, None, None]), model(flat[:, None]), "float32")
    with pytest.raises(
        ValueError, match=r"Expected shape \(None, 1\), but input has incompatible shape \(3, 2\)"
    ):
        model(np.zeros((3, 2), np.float32))


def test_a_deep_model_needs_no_deep_stack() -> None:
    x = start = keras.Input((1,))
    for _ in range(1500):
        x = layers.ReLU()(x)
    check(keras.Model(start, x)(np.ones((1, 1), np.float32)), [[1]], "float32")


def test_layers_one_after_the_other() -> None:
    model = keras.Sequential([layers.Dense(3, "relu"), layers.Dense(1)])
    assert not model.built
    assert model.weights == []
    model.build((None, 6))
    assert [tuple(each.shape) for each in model.weights] == [(6, 3), (3,), (3, 1), (1,)]
    a, b, c, d = model.get_weights()
    check(model(ROWS), np.maximum(ROWS @ a + b, 0) @ c + d, "float32", rtol=1e-5, atol=1e-5)
    assert model.inputs[0].shape == (None, 6)
    assert model.outputs[0].shape == (None, 1)
    assert model.compute_output_shape((7, 6)) == (7, 1)


def test_layers_are_added_and_taken_off() -> None:
    model = keras.Sequential()
    model.add(keras.Input((6,)))
    model.add(layers.Dense(3))
    model.add(layers.Dense(2))
    assert model.outputs[0].shape == (None, 2)
    last = model.pop()
    assert model.outputs[0].shape == (None, 3)
    assert last not in model.layers
    model.add(last)
    assert tuple(model(ROWS).shape) == (4, 2)


def test_a_first_layer_with_the_shape_of_samples_builds_the_model() -> None:
    model = keras.Sequential([layers.Dense(3, input_shape=(6,))])
    assert model.built
    assert model.layers[0].output.shape == (None, 3)


class Own(keras.Model):
    """Two layers, the second behind dropout."""

    def __init__(self) -> None:
        super().__init__(name="own")
        self.first = layers.Dense(3)
        self.rest = [layers.Dropout(0.5, seed=1), layers.Dense(2)]

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        x = self.first(inputs)
        for layer in self.rest:
            x = layer(x)
        return x


def test_a_model_of_ones_own() -> None:
    model = Own()
    made = model(ROWS)
    assert [type(each).__name__ for each in model.layers] == ["Dense", "Dropout", "Dense"]
    assert len(model.trainable_weights) == 4
    check(made, model(ROWS, training=False), "float32")
    assert (model(ROWS, training=True).numpy() != made.numpy()).any()


def test_a_model_of_ones_own_is_built_for_a_shape() -> None:
    model = Own()
    with pytest.warns(UserWarning, match="does not have a `build\\(\\)` method implemented"):
        model.build((None, 6))
    # As in Keras, the layers have no variables before the first call.
    assert model.built
    assert model.weights == []
    model(np.zeros((2, 6), np.float32))
    assert [tuple(each.shape) for each in model.weights] == [(6, 3), (3,), (3, 2), (2,)]


SUMMARY = """\
Model: "sequential"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ conv2d (Conv2D)                 │ (None, 6, 6, 4)        │            40 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ batch_normalization             │ (None, 6, 6, 4)        │            16 │
│ (BatchNormalization)            │                        │               │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ flatten (Flatten)               │ (None, 144)            │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ dense (Dense)                   │ (None, 10)             │         1,450 │
└─────────────────────────────────┴────────────────────────┴───────────────┘
 Total params: 1,506 (5.88 KB)
 Trainable params: 1,498 (5.85 KB)
 Non-trainable params: 8 (32.00 B)
"""


def test_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(4, 3),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )
    model.summary()
    assert capsys.readouterr().out == SUMMARY
    lines: list[str] = []
    model.summary(line_length=60, print_fn=lines.append)
    assert max(map(len, "\n".join(lines).splitlines())) == 60


def test_a_summary_says_what_is_connected_and_what_is_not_built(capsys: pytest.CaptureFixture[str]) -> None:
    branched().summary(line_length=120)
    table = capsys.readouterr().out
    assert "Connected to" in table
    assert "shared[0][0], shared[1][0]" in table
    assert "both[0][0], a[0][0]" in table
    model = keras.Sequential([layers.Dense(3), layers.Dropout(0.1)])
    model.summary()
    table = capsys.readouterr().out
    assert "0 (unbuilt)" in table
    assert "?" in table
    model.build((None, 2))
    model.compile("adam", "mse")
    model.fit(np.zeros((2, 2)), np.zeros((2, 3)), verbose=0)
    model.summary()
    assert " Optimizer params: 18 (72.00 B)" in capsys.readouterr().out


def test_variables_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    one, other = branched(), branched()
    one.save_weights(path)
    other.load_weights(str(path))
    for mine, theirs in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        one.save_weights(path, overwrite=False)
    small = keras.Sequential([keras.Input((6,)), layers.Dense(1)])
    with pytest.raises(ValueError, match="weight list of length 6, but the layer was expecting 2 weights"):
        small.load_weights(path)
    with pytest.raises(ValueError, match=r"must end in `\.npz`"):
        one.save_weights(tmp_path / "weights.h5")
    with pytest.raises(ValueError, match="has no variables"):
        keras.Sequential([layers.Dense(1)]).save_weights(path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"no file of `save_weights`"):
        one.load_weights(path)


def test_weights_that_do_not_fit_change_nothing() -> None:
    model = keras.Sequential([keras.Input((6,)), layers.Dense(2)])
    before = model.get_weights()
    with pytest.raises(
        ValueError, match=r"weight shape \(2,\) is not compatible with provided weight shape \(3,\)"
    ):
        model.set_weights([np.ones((6, 2)), np.ones(3)])
    np.testing.assert_array_equal(model.get_weights()[0], before[0])


def unconnected() -> Any:
    return keras.Model(keras.Input((3,)), layers.Dense(1)(keras.Input((3,))))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (unconnected, "is not connected to `inputs`"),
        (lambda: keras.Model(ROWS, ROWS), "All `inputs` values must be KerasTensors"),
        (lambda: keras.Sequential([3]), "Only instances of `keras.Layer` can be added"),
        (
            lambda: keras.Sequential([layers.ReLU(name="a"), layers.ReLU(name="a")]),
            "should have unique names",
        ),
        (lambda: branched()(ROWS), r"expected 2 input\(s\). Received 1 instead"),
        (lambda: branched()({"a": ROWS}), "Missing data for input 'b'"),
        (lambda: branched().get_layer("c"), "No such layer: c. Existing layers are"),
        (lambda: branched().get_layer(index=9), "retrieve layer at index 9 but model only has 7 layers"),
        (lambda: keras.Sequential([layers.Dense(2)]).count_params(), "the layer isn't built"),
        (
            lambda: constant([1.0]) + keras.Input((1,)),
            "A KerasTensor cannot be used as input to a TensorFlow",
        ),
        (lambda: np.asarray(keras.Input((1,))), "A KerasTensor is symbolic"),
    ],
)
def test_models_that_cannot_be(make: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()


def test_a_class_of_ones_own_with_inputs_and_outputs_trains_by_its_own_step() -> None:
    class Mine(keras.Model):
        def train_step(self, data: Any) -> Any:
            x, y = data
            with GradientTape() as tape:
                predicted = self(x, training=True)
                loss = self.compute_loss(x=x, y=y, y_pred=predicted)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, predicted)
            return {metric.name: metric.result() for metric in self.metrics}

    class Made(Mine):
        def __init__(self, units: int) -> None:
            start = keras.Input((3,))
            super().__init__(inputs=start, outputs=layers.Dense(units)(start), name="made")
            self.units = units

    start = keras.Input((3,))
    model = Mine(start, layers.Dense(1, kernel_initializer="ones")(start))
    model.compile("sgd", "mse", metrics=["mae"])
    samples = np.arange(12.0).reshape(4, 3).astype(np.float32) / 10
    found = model.fit(samples, samples[:, :1], epochs=2, verbose=0, batch_size=2, shuffle=False)
    # TensorFlow 2.21 finds the same.
    np.testing.assert_allclose(found.history["loss"], [1.8498, 1.5674], rtol=1e-4)
    assert isinstance(model, keras.Model)
    assert (len(model.layers), model.input_shape) == (2, (None, 3))
    one, other = Made(2), Made(4)
    assert (one.name, one.output_shape, other.output_shape) == ("made", (None, 2), (None, 4))
    assert (one.units, len(one.weights)) == (2, 2)

    class Other(keras.Model):
        """Not a functional one, though another class is."""

    assert not Other().built


def test_names_are_counted() -> None:
    made = [layers.Dense(1).name, layers.Dense(1).name, layers.MaxPooling2D().name, layers.ReLU().name]
    assert made == ["dense", "dense_1", "max_pooling2d", "re_lu"]
    assert repr(layers.Dense(1)) == "<Dense name=dense_2, built=False>"
    assert repr(keras.Input((3,), name="x")) == "<KerasTensor shape=(None, 3), dtype=float32, name=x>"
