"""Training that ends early: what is better, and when it stops."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import keras
from allotment.tf.keras import layers

draw = np.random.default_rng(0)
X = draw.standard_normal((10, 3))
Y = X @ np.array([[1.0], [-2.0], [0.5]]) + 0.3


def linear(optimizer: Any = "sgd", **compiled: Any) -> keras.Sequential:
    """One dense layer that starts with zeros."""
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1, kernel_initializer="zeros")])
    model.compile(optimizer, "mse", **compiled)
    return model


def test_training_ends_when_it_gets_no_better(capsys: pytest.CaptureFixture[str]) -> None:
    model = linear(keras.optimizers.SGD(0.1))
    stopping = keras.callbacks.EarlyStopping("loss", patience=2, restore_best_weights=True, verbose=1)
    values = iter([3.0, 2.0, 2.5, 2.0, 1.0])
    weights: list[Any] = []

    class Given(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            logs["loss"] = next(values)
            weights.append(self.model.get_weights())

    history = model.fit(X, Y, epochs=9, verbose=0, callbacks=[Given(), stopping]).history
    assert history["loss"] == [3.0, 2.0, 2.5, 2.0]
    assert (stopping.stopped_epoch, stopping.best, stopping.best_epoch) == (3, 2.0, 1)
    np.testing.assert_array_equal(model.get_weights()[0], weights[1][0])
    assert capsys.readouterr().out == (
        "Epoch 4: early stopping\nRestoring model weights from the end of the best epoch: 2.\n"
    )


@pytest.mark.parametrize(
    ("monitor", "mode", "values", "epochs"),
    [
        ("accuracy", "auto", [0.1, 0.2, 0.15], 3),
        ("mine", "max", [0.1, 0.2, 0.3], 3),
        ("mine", "max", [3.0, 2.0, 1.0], 2),
        ("loss", "auto", [3.0, 2.99, 2.0], 2),
    ],
)
def test_what_is_better_depends_on_the_number(
    monitor: str, mode: str, values: list[float], epochs: int
) -> None:
    given = iter(values)

    class Given(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            logs[monitor] = next(given)

    stopping = keras.callbacks.EarlyStopping(monitor, mode=mode, min_delta=0.05, patience=1)
    history = linear(metrics=["accuracy"]).fit(X, Y, epochs=3, verbose=0, callbacks=[Given(), stopping])
    assert len(history.epoch) == epochs


@pytest.mark.parametrize(
    ("values", "arguments", "epochs", "best"),
    [
        ([5.0, 4.0, 3.0, 2.0, 1.0], {}, 5, 4),
        ([5.0, 4.0, 3.0, 2.0, 1.0], {"baseline": 2.5}, 5, 4),
        # While it improves without reaching the baseline, it goes on; the first epoch that does not ends it.
        ([5.0, 4.0, 3.0, 3.5, 1.0], {"baseline": 0.5, "patience": 3}, 4, 2),
        ([5.0, 4.0, 4.0, 4.0, 4.0], {"patience": 2}, 4, 1),
        ([5.0, 6.0, 7.0, 8.0, 9.0], {"start_from_epoch": 2}, 4, 2),
        ([5.0, 5.0, 5.0, 5.0, 5.0], {"patience": 0}, 2, 0),
        ([np.nan, 5.0, 4.0, 3.0, 2.0], {"patience": 1}, 2, 0),
    ],
)
def test_training_goes_on_while_it_gets_better(
    values: list[float], arguments: Any, epochs: int, best: int
) -> None:
    class Given(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            logs["loss"] = values[epoch]

    stopping = keras.callbacks.EarlyStopping("loss", **arguments)
    history = linear().fit(X, Y, epochs=5, verbose=0, callbacks=[Given(), stopping])
    assert (len(history.epoch), stopping.best_epoch) == (epochs, best)


def test_the_direction_of_an_unknown_figure_has_to_be_given() -> None:
    with pytest.raises(ValueError, match="cannot tell whether 'mine' should be maximized or minimized"):
        linear().fit(X, Y, verbose=0, callbacks=[keras.callbacks.EarlyStopping("mine")])
