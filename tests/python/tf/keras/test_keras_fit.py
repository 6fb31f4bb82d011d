"""Training loops: the forms of data, the calls of callbacks, and the lines that are shown.

Longer than 300 lines: one argument of `fit` after the other, on the same model.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from allotment.tf import data as tf_data
from allotment.tf import keras
from allotment.tf import random as tf_random
from allotment.tf.differentiation.gradient_tape import GradientTape
from allotment.tf.keras import layers
from allotment.tf.ops.array.constants import constant

draw = np.random.default_rng(0)
X = draw.standard_normal((10, 3))
Y = X @ np.array([[1.0], [-2.0], [0.5]]) + 0.3


def linear(optimizer: Any = "sgd", **compiled: Any) -> keras.Sequential:
    """One dense layer that starts with zeros."""
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1, kernel_initializer="zeros")])
    model.compile(optimizer, "mse", **compiled)
    return model


def fitted(*data: Any, epochs: int = 2, **arguments: Any) -> list[float]:
    """The losses of epochs."""
    history = linear().fit(*data, **arguments, epochs=epochs, verbose=0)  # type: ignore[misc]
    return history.history["loss"]


def test_data_may_come_in_many_forms() -> None:
    wanted = fitted(X, Y, batch_size=4, shuffle=False)
    assert wanted[1] < wanted[0]
    batches = [(X[i : i + 4], Y[i : i + 4]) for i in (0, 4, 8)]
    forms: list[Any] = [
        fitted(constant(X), constant(Y, "float32"), batch_size=4, shuffle=False),
        fitted([X], [Y], batch_size=4, shuffle=False),
        fitted(tf_data.Dataset.from_tensor_slices((X, Y)).batch(4)),
        fitted(tf_data.Dataset.from_tensor_slices((X, Y)).batch(4).repeat(), steps_per_epoch=3),
        # A size of batches that a data set has already counts nothing.
        fitted(tf_data.Dataset.from_tensor_slices((X, Y)).batch(4), batch_size=2),
        fitted(dict(enumerate(batches)).values()),
        fitted((each for each in batches * 2), steps_per_epoch=3),
        fitted(X, Y, batch_size=4, shuffle=False, sample_weight=np.ones(10)),
        fitted(X, Y[:, 0], batch_size=4, shuffle=False),
    ]
    for found in forms:
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_several_inputs_and_outputs_by_position_and_by_name() -> None:
    def made() -> keras.Model:
        a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b")
        one = layers.Dense(1, kernel_initializer="ones", name="one")(layers.Concatenate()([a, b]))
        two = layers.Dense(2, "softmax", kernel_initializer="zeros", name="two")(b)
        return keras.Model([a, b], [one, two])

    b, classes = X[:, :2], (X[:, 0] > 0).astype(int)
    losses, metrics = ["mse", "sparse_categorical_crossentropy"], [["mae"], ["accuracy"]]
    by_position, by_name = made(), made()
    by_position.compile("sgd", losses, loss_weights=[0.5, 2], metrics=metrics)
    by_name.compile(
        "sgd",
        dict(zip(("two", "one"), losses[::-1], strict=True)),
        loss_weights={"two": 2, "one": 0.5},
        metrics={"one": ["mae"], "two": "accuracy"},
    )
    one = by_position.fit([X, b], [Y, classes], 4, 3, verbose=0, shuffle=False).history
    other = by_name.fit({"a": X, "b": b}, {"one": Y, "two": classes}, 4, 3, verbose=0, shuffle=False).history
    assert list(one) == ["loss", "one_loss", "one_mae", "two_accuracy", "two_loss"]
    assert one == other
    # That of all is a mean over samples, those of the outputs are means over batches.
    assert one["loss"] != pytest.approx(0.5 * np.array(one["one_loss"]) + 2 * np.array(one["two_loss"]))
    first, second = by_position.predict([X, b], verbose=0)
    assert (first.shape, second.shape) == ((10, 1), (10, 2))
    evaluated = by_position.evaluate([X, b], [Y, classes], verbose=0)
    assert evaluated[1:3] == [
        by_position.evaluate([X, b], [Y, classes], verbose=0, return_dict=True)[f"{name}_loss"]
        for name in ("one", "two")
    ]
    assert evaluated[3] == pytest.approx(abs(first - Y).mean(), rel=1e-5)
    assert evaluated[4] == pytest.approx((second.argmax(1) == classes).mean())


def test_weights_of_samples() -> None:
    weights = draw.uniform(0, 2, 10)
    wanted = pytest.approx((weights * Y[:, 0] ** 2).mean(), rel=1e-5)
    for shape in ((10,), (10, 1)):
        given = weights.reshape(shape)
        assert linear().evaluate(X, Y, batch_size=4, sample_weight=given, verbose=0) == wanted
        history = linear("sgd").fit(X, Y, batch_size=10, sample_weight=given, verbose=0).history
        assert history["loss"] == [wanted]


def test_weights_of_classes_and_metrics_with_weights() -> None:
    classes = np.arange(10) % 2
    weights = np.where(classes == 1, 3.0, 1.0)
    model = linear(metrics=["mae"], weighted_metrics=["mae"])
    by_class = model.train_on_batch(X, classes, class_weight={1: 3.0}, return_dict=True)
    assert by_class["loss"] == pytest.approx((weights * classes**2).mean())
    assert by_class["mae"] == pytest.approx(0.5)
    assert by_class["weighted_mae"] == pytest.approx(np.average(classes, weights=weights))
    batches = tf_data.Dataset.from_tensor_slices((X, classes)).batch(10)
    for x, y in ((X, classes), (batches, None)):
        found = linear().fit(x, y, class_weight={0: 1.0, 1: 3.0}, verbose=0).history
        assert found["loss"] == pytest.approx([(weights * classes**2).mean()])
    with pytest.raises(ValueError, match="cannot be given at the same time"):
        linear().fit(X, classes, class_weight={1: 3.0}, sample_weight=weights, verbose=0)


@pytest.mark.parametrize(
    ("metrics", "wanted"),
    [
        (["mae", "mse"], {"a_mae", "b_mse"}),
        ([["mae", "mse"], None], {"a_mae", "a_mse"}),
        ({"b": "mae"}, {"b_mae"}),
    ],
)
def test_metrics_of_two_outputs_are_one_for_each(metrics: Any, wanted: set[str]) -> None:
    start = keras.Input((3,))
    model = keras.Model(start, [layers.Dense(1, name="a")(start), layers.Dense(1, name="b")(start)])
    model.compile("sgd", "mse", metrics=metrics)
    found = model.train_on_batch(X, [Y, Y], return_dict=True)
    assert set(found) == {"loss", "a_loss", "b_loss", *wanted}
    model.compile("sgd", "mse", metrics=["mae"])
    with pytest.raises(ValueError, match="a list with an entry for each"):
        model.train_on_batch(X, [Y, Y])


@pytest.mark.parametrize(
    ("arguments", "batches"), [({}, 1), ({"batch_size": 2}, 1), ({"validation_batch_size": 3}, 1)]
)
def test_one_step_of_validation_is_one_batch(arguments: Any, batches: int) -> None:
    spy = Spy()
    linear().fit(X, Y, validation_split=0.5, validation_steps=1, verbose=0, callbacks=spy, **arguments)
    assert spy.calls.count("on_test_batch_end") == batches


def test_data_of_rank_1_are_a_column_where_the_model_wants_one() -> None:
    model = keras.Sequential([keras.Input((1,)), layers.Dense(2, kernel_initializer="ones")])
    np.testing.assert_allclose(model.predict(np.arange(3.0), verbose=0), [[0, 0], [1, 1], [2, 2]])
    np.testing.assert_allclose(model(np.arange(2.0)).numpy(), [[0, 0], [1, 1]])


def test_samples_are_shuffled_and_the_seed_says_how() -> None:
    seen: list[Any] = []

    class Watching(keras.Model):
        def call(self, inputs: Any) -> Any:
            seen.append(inputs.numpy()[:, 0].tolist())
            return inputs

    def orders(**arguments: Any) -> list[Any]:
        seen.clear()
        model = Watching()
        model.compile("sgd", "mse")
        numbers = np.arange(6.0)[:, None]
        with pytest.warns(UserWarning, match="not have any trainable weights"):
            model.fit(numbers, numbers, verbose=0, batch_size=6, **arguments)
        return seen[-1]  # type: ignore[no-any-return]

    tf_random.set_seed(1)
    first = orders()
    assert sorted(first) == list(range(6))
    assert orders() != first
    tf_random.set_seed(1)
    assert orders() == first
    assert orders(shuffle=False) == list(range(6))


def test_validation() -> None:
    shown = linear().fit(X, Y, epochs=3, verbose=0, validation_data=(X[:4], Y[:4]), validation_freq=2).history
    assert list(map(len, shown.values())) == [3, 1]
    split = linear().fit(X, Y, epochs=1, verbose=0, validation_split=0.2, shuffle=False)
    apart = linear().fit(X[:8], Y[:8], epochs=1, verbose=0, validation_data=(X[8:], Y[8:]), shuffle=False)
    assert split.history == apart.history
    assert list(split.history) == ["loss", "val_loss"]
    dataset = tf_data.Dataset.from_tensor_slices((X[8:], Y[8:])).batch(1)
    again = linear().fit(X[:8], Y[:8], epochs=1, verbose=0, validation_data=dataset, shuffle=False)
    assert again.history["val_loss"] == pytest.approx(split.history["val_loss"], rel=1e-6)


def test_single_batches() -> None:
    model = linear(metrics=["mae"])
    first = model.train_on_batch(X, Y, return_dict=True)
    assert first["loss"] == pytest.approx((Y**2).mean(), rel=1e-5)
    assert first["mae"] == pytest.approx(abs(Y).mean(), rel=1e-5)
    model.reset_metrics()
    loss, mae = model.test_on_batch(X, Y)
    assert mae == pytest.approx(abs(model.predict_on_batch(X) - Y).mean(), rel=1e-5)
    assert loss < first["loss"]


class Spy(keras.callbacks.Callback):
    """Notes what is called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("on_"):
            self.calls.append(name)
        return super().__getattribute__(name)


def test_callbacks_are_called_in_order() -> None:
    spy = Spy()
    linear().fit(X, Y, batch_size=5, epochs=1, verbose=0, callbacks=spy, validation_data=(X, Y))
    others = ("on_train_batch_end", "on_test_batch_end", "on_batch_begin", "on_batch_end")
    calls = [each for each in spy.calls if each not in others]
    assert calls == [
        "on_train_begin",
        "on_epoch_begin",
        *["on_train_batch_begin"] * 2,
        "on_test_begin",
        *["on_test_batch_begin"] * 2,
        "on_test_end",
        "on_epoch_end",
        "on_train_end",
    ]


def test_functions_as_callbacks() -> None:
    batches: list[Any] = []
    epochs: list[Any] = []
    callback = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: batches.append((batch, logs["loss"])),
        on_epoch_end=lambda epoch, logs: epochs.append(logs["loss"]),
    )
    history = linear().fit(X, Y, batch_size=5, epochs=2, verbose=0, callbacks=[callback]).history
    assert [batch for batch, _ in batches] == [0, 1, 0, 1]
    assert epochs == history["loss"] == [batches[1][1], batches[3][1]]
    with pytest.raises(TypeError, match="a callback has no method 'on_foo'"):
        keras.callbacks.LambdaCallback(on_foo=print)


def test_lines_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    model = linear(metrics=["mae"])
    # Captured output is no terminal: there is no bar to move.
    for verbose in (2, 1, "auto"):
        model.fit(X, Y, batch_size=4, epochs=2, verbose=verbose, validation_data=(X, Y))
        lines = capsys.readouterr().out.splitlines()
        assert lines[0::2] == ["Epoch 1/2", "Epoch 2/2"]
        number = r"\d+\.\d{4}(e-\d\d)?"
        names = " - ".join(f"{name}: {number}" for name in ("loss", "mae", "val_loss", "val_mae"))
        for line in lines[1::2]:
            assert re.fullmatch(rf"3/3 - 0s - \d+[um]s/step - {names}", line)
    model.evaluate(X, Y)
    model.predict(X)
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"1/1 - 0s - \d+[um]s/step - loss: {number} - mae: {number}", first)
    assert re.fullmatch(r"1/1 - 0s - \d+[um]s/step", second)
    model.fit(X, Y, verbose=0)
    assert capsys.readouterr().out == ""


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    linear().fit(X, Y, batch_size=1, epochs=1, verbose=1)
    shown = capsys.readouterr().out
    assert "10/10" in shown
    assert "━" in shown
    assert "loss: " in shown


def test_a_model_with_a_step_of_its_own() -> None:
    class Halved(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(1, kernel_initializer="zeros")
            self.seen = keras.metrics.Sum(name="seen")

        def call(self, inputs: Any) -> Any:
            return self.dense(inputs)

        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            with GradientTape() as tape:
                loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
            variables = self.trainable_variables
            gradients = [each / 2 for each in tape.gradient(loss, variables)]
            self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
            self.seen.update_state(len(x))
            return {"loss": loss, "seen": self.seen.result(), "half": loss / 2}

    model, plain = Halved(), linear(keras.optimizers.SGD(0.05))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    history = model.fit(X, Y, batch_size=10, epochs=3, verbose=0, shuffle=False).history
    wanted = plain.fit(X, Y, batch_size=10, epochs=3, verbose=0, shuffle=False).history["loss"]
    np.testing.assert_allclose(history["loss"], wanted, rtol=1e-6)
    np.testing.assert_allclose(history["half"], np.array(wanted) / 2, rtol=1e-6)
    assert history["seen"] == [10, 10, 10]


def endless() -> Any:
    return tf_data.Dataset.from_tensor_slices((X, Y)).batch(4).repeat()


def numbers() -> Iterator[Any]:
    yield 1, 2, 3, 4


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: keras.Sequential([layers.Dense(1)]).fit(X, Y), r"You must call `compile\(\)` before"),
        (lambda: linear().fit(), "there is no data"),
        (lambda: linear().fit(X, Y[:3]), "Data cardinality is ambiguous"),
        (lambda: linear().fit(X[:0], Y[:0]), "there is no sample"),
        (lambda: linear().fit(X, verbose=0), "there is no `y` to compute the loss"),
        (
            lambda: linear().fit(X, [Y, Y], verbose=0),
            "y_true and y_pred have different structures",
        ),
        (lambda: linear().fit(3), r"Unrecognized data type: x=3 \(of type <class 'int'>\)"),
        (lambda: linear().fit(endless(), verbose=0), "infinitely repeating dataset"),
        (lambda: linear().fit(endless(), Y, steps_per_epoch=1), "`y` should not be passed"),
        (lambda: linear().fit(numbers(), verbose=0), r"found: 4 elements"),
        (lambda: linear().fit(X, Y, batch_size=0), "`batch_size` must be at least 1"),
        (
            lambda: linear().fit(X, Y, batch_size="a"),  # type: ignore[arg-type]
            "`batch_size` must be at least 1. Received: batch_size=a",
        ),
        (lambda: linear().fit(X, Y, validation_split=2), "`validation_split` must be between 0 and 1"),
        (lambda: linear().fit(X, Y, validation_split=0.95), "not sufficient to split it"),
        (lambda: linear().fit(X, Y, verbose=7), "verbose must be 'auto', 0, 1 or 2, not 7"),
        (
            lambda: linear(loss_weights=[1.0, 2.0]).fit(X, Y, verbose=0),
            "got 1 losses and 2 weights",
        ),
        (lambda: linear(metrics=["foo"]), "Could not interpret metric identifier: foo"),
        (lambda: keras.Sequential().compile("foo"), "Could not interpret optimizer identifier: foo"),
        (lambda: keras.Sequential().compile("sgd", "foo"), "Could not interpret loss identifier: foo"),
    ],
)
def test_what_cannot_be_trained(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()
