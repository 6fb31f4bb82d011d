"""Callbacks of the program's own, and those that change how a model is trained."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import keras
from allotment.tf.differentiation.gradient_tape import GradientTape
from allotment.tf.keras import layers
from allotment.tf.keras.callbacks import Callback, LambdaCallback, LearningRateScheduler

X = np.random.default_rng(0).standard_normal((8, 3))
Y = X.sum(1, keepdims=True)


def model(kind: type[keras.Sequential] = keras.Sequential, **compiled: Any) -> keras.Sequential:
    made = kind([keras.Input((3,)), layers.Dense(1, kernel_initializer="zeros")])
    made.compile(keras.optimizers.SGD(0.1), "mse", **compiled)
    return made


def test_methods_that_want_numbers_get_some_everywhere() -> None:
    told: list[tuple[str, int]] = []

    def hook(name: str, positions: int) -> Any:
        # Without a default: whoever calls it has to say the numbers.
        if positions:
            return lambda self, index, logs: told.append((name, len(dict(logs))))
        return lambda self, logs: told.append((name, len(dict(logs))))

    methods = {
        name: hook(name, "epoch" in name or "batch" in name)
        for name in vars(Callback)
        # Under their older names, those of batches are called by the others.
        if name.startswith("on_") and not name.startswith("on_batch")
    }
    strict = type("Strict", (Callback,), methods)()
    trained = model()
    trained.fit(X, Y, batch_size=8, verbose=0, callbacks=[strict], validation_data=(X, Y))
    trained.predict(X, verbose=0, callbacks=[strict])
    assert told == [
        ("on_train_begin", 0),
        ("on_epoch_begin", 0),
        ("on_train_batch_begin", 0),
        ("on_train_batch_end", 1),
        ("on_test_begin", 0),
        ("on_test_batch_begin", 0),
        ("on_test_batch_end", 1),
        ("on_test_end", 1),
        ("on_epoch_end", 2),
        ("on_train_end", 2),
        ("on_predict_begin", 0),
        ("on_predict_batch_begin", 0),
        ("on_predict_batch_end", 1),
        ("on_predict_end", 0),
    ]


def test_several_steps_count_as_one_where_that_is_wished() -> None:
    told: list[tuple[str, int]] = []

    def hook(name: str) -> Any:
        return lambda self, batch, logs=None: told.append((name, batch))

    names = [f"on_{what}_batch_{end}" for what in ("train", "test", "predict") for end in ("begin", "end")]
    strict = type("Strict", (Callback,), {name: hook(name) for name in names})()
    trained, plain = model(steps_per_execution=3), model()
    history = trained.fit(X, Y, batch_size=2, shuffle=False, verbose=0, callbacks=[strict])
    found = trained.predict(X, batch_size=2, verbose=0, callbacks=[strict])
    # Numbers as TensorFlow's, which do not tell that the last has one step alone.
    assert told == [
        (f"on_{what}_batch_{end}", batch)
        for what in ("train", "predict")
        for end, batch in (("begin", 0), ("end", 2), ("begin", 3), ("end", 5))
    ]
    assert history.history == plain.fit(X, Y, batch_size=2, shuffle=False, verbose=0).history
    np.testing.assert_array_equal(found, plain.predict(X, batch_size=2, verbose=0))


def test_functions_that_want_numbers_get_some() -> None:
    begun: list[Any] = []
    callback = LambdaCallback(on_epoch_begin=lambda epoch, logs: begun.append((epoch, logs)))
    model().fit(X, Y, epochs=2, verbose=0, callbacks=[callback])
    assert begun == [(0, {}), (1, {})]


def test_the_learning_rate_of_each_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    trained = model()
    scheduler = LearningRateScheduler(lambda epoch, rate: rate / 2 if epoch else rate, verbose=1)
    history = trained.fit(X, Y, epochs=3, batch_size=8, verbose=0, callbacks=[scheduler]).history
    np.testing.assert_allclose(history["learning_rate"], [0.1, 0.05, 0.025], rtol=1e-6)
    assert "Epoch 2: LearningRateScheduler setting learning rate to 0.05" in capsys.readouterr().out
    kernel, bias = np.zeros((3, 1)), np.zeros(1)
    for rate in (0.1, 0.05, 0.025):
        error = 2 * (X @ kernel + bias - Y) / len(X)
        kernel, bias = kernel - rate * X.T @ error, bias - rate * error.sum(0)
    np.testing.assert_allclose(trained.get_weights()[0], kernel, rtol=1e-5)
    np.testing.assert_allclose(trained.get_weights()[1], bias, rtol=1e-5)


def test_a_schedule_may_only_want_the_epoch() -> None:
    scheduler = LearningRateScheduler(lambda epoch: 0.5 / (epoch + 1))
    history = model().fit(X, Y, epochs=2, verbose=0, callbacks=[scheduler]).history
    np.testing.assert_allclose(history["learning_rate"], [0.5, 0.25])


def test_a_schedule_that_gives_no_float() -> None:
    with pytest.raises(ValueError, match=r"should be a float\. Got: 'fast'"):
        model().fit(X, Y, verbose=0, callbacks=[LearningRateScheduler(lambda epoch: "fast")])


def test_a_step_of_ones_own_may_return_metrics_in_groups() -> None:
    class OwnStep(keras.Sequential):
        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            with GradientTape() as tape:
                predicted = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=predicted)
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, predicted)
            return {metric.name: metric.result() for metric in self.metrics}

    wanted = model(metrics=["mae"]).fit(X, Y, epochs=2, batch_size=4, shuffle=False, verbose=0).history
    history = (
        model(OwnStep, metrics=["mae"]).fit(X, Y, epochs=2, batch_size=4, shuffle=False, verbose=0).history
    )
    assert history.keys() == wanted.keys() == {"loss", "mae"}
    for name, values in wanted.items():
        np.testing.assert_allclose(history[name], values, rtol=1e-6)
