"""Data that end before the training does, and arguments that no data can meet."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from allotment.tf import data as tf_data
from allotment.tf import keras
from allotment.tf.keras import layers

X = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
Y = X.sum(1, keepdims=True)


def linear() -> keras.Sequential:
    """One dense layer that starts with zeros."""
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1, kernel_initializer="zeros")])
    model.compile("sgd", "mse", metrics=["mae"])
    return model


def batches(count: int) -> Iterator[Any]:
    """A generator: it can be gone through once."""
    return ((X[:4], Y[:4]) for _ in range(count))


class Hooks(keras.callbacks.Callback):
    """Writes down which epochs ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[int] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.ended.append(epoch)


def test_a_generator_that_is_used_up_ends_the_training_with_a_warning() -> None:
    model, hooks = linear(), Hooks()
    with pytest.warns(UserWarning, match="ran out of data: there was no batch for this training") as told:
        history = model.fit(batches(3), epochs=5, verbose=0, callbacks=hooks)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert history.epoch == hooks.ended == [0]
    assert len(history.history["loss"]) == 1
    assert history.history["loss"][0] > 0


def test_an_epoch_that_gets_fewer_batches_than_asked_for_ends_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="there was 1 of 2 batches for this training"):
        history = linear().fit(batches(3), epochs=2, steps_per_epoch=2, verbose=0)
    assert history.epoch == [0, 1]
    with pytest.warns(UserWarning, match="there was 2 of 5 batches for this training") as told:
        history = linear().fit(X, Y, batch_size=4, epochs=2, steps_per_epoch=5, verbose=0, shuffle=False)
    assert len(told) == 2
    wanted = linear().fit(X, Y, batch_size=4, epochs=2, verbose=0, shuffle=False)
    assert history.history == wanted.history


@pytest.mark.parametrize(("steps", "epochs"), [(2, 3), (4, 3), (5, 3)])
@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_a_data_set_that_was_read_to_its_end_begins_again(steps: int, epochs: int) -> None:
    data = tf_data.Dataset.from_tensor_slices((X, Y)).batch(2)
    history = linear().fit(data, epochs=epochs, steps_per_epoch=steps, verbose=0)
    wanted = linear().fit(data.repeat(), epochs=epochs, steps_per_epoch=min(steps, 4), verbose=0)
    assert history.epoch == list(range(epochs))
    assert history.history == wanted.history


@pytest.mark.parametrize(
    ("split", "batch_size", "losses"),
    [
        (0.0, 6, [0.26736, 1.65744, 0.28015, 1.51019, 0.29365]),
        (0.5, 4, [0.37153, 0.0643, 0.36485, 0.06669, 0.35851]),
    ],
)
def test_arrays_that_were_read_to_their_end_begin_again(
    split: float, batch_size: int, losses: list[float]
) -> None:
    x, y = np.arange(36, dtype=np.float32).reshape(12, 3) / 36, np.ones(12, np.float32)
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    history = model.fit(
        x, y, batch_size, 5, verbose=0, shuffle=False, validation_split=split, steps_per_epoch=1
    )
    # TensorFlow's losses.
    np.testing.assert_allclose(history.history["loss"], losses, atol=1e-5)


def test_validation_that_has_no_batch_any_more_is_left_out_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="there was no batch for this validation"):
        history = linear().fit(X, Y, validation_data=batches(2), epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2
    assert len(history.history["val_loss"]) == 1


def test_no_data_at_all() -> None:
    model, none = linear(), tf_data.Dataset.from_tensor_slices((X, Y)).batch(4).take(0)
    before = model.get_weights()
    with pytest.warns(UserWarning, match="no batch for this training"):
        assert model.fit(none, epochs=2, verbose=0).history == {}
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="no batch to evaluate the model with"):
        model.evaluate(none, verbose=0)
    with pytest.raises(ValueError, match="no batch to predict the outputs of"):
        model.predict(none.map(lambda x, _: x), verbose=0)


def test_evaluations_and_predictions_of_fewer_batches_than_asked_for_warn() -> None:
    model = linear()
    with pytest.warns(UserWarning, match="2 of 3 batches for this evaluation"):
        found = model.evaluate(X, Y, batch_size=4, steps=3, verbose=0)
    assert found == model.evaluate(X, Y, batch_size=4, verbose=0)
    with pytest.warns(UserWarning, match="2 of 3 batches for this prediction"):
        assert model.predict(X, batch_size=4, steps=3, verbose=0).shape == (8, 1)


def test_none_in_the_place_of_a_batch_is_an_error_and_no_end() -> None:
    with pytest.raises(ValueError, match="gave None in the place of a batch"):
        linear().fit(iter([(X, Y), None]), steps_per_epoch=2, verbose=0)
    with pytest.raises(ValueError, match="gave None in the place of a batch"):
        linear().fit(iter([None]), verbose=0)


@pytest.mark.parametrize("steps", [0, -1, 2.5])
def test_a_number_of_steps_is_above_zero(steps: Any) -> None:
    model = linear()
    for name in ("steps_per_epoch", "validation_steps"):
        with pytest.raises(ValueError, match=f"`{name}`, expected a positive integer"):
            model.fit(X, Y, validation_data=(X, Y), verbose=0, **{name: steps})
    with pytest.raises(ValueError, match="`steps_per_epoch`, expected a positive integer"):
        model.fit(X, Y, validation_split=0.5, verbose=0, steps_per_epoch=steps)
    with pytest.raises(ValueError, match="`steps`, expected a positive integer"):
        model.evaluate(X, Y, verbose=0, steps=steps)


def test_a_share_for_validation_and_a_number_of_steps_go_together() -> None:
    history = linear().fit(
        X, Y, batch_size=2, validation_split=0.5, steps_per_epoch=1, epochs=2, shuffle=False, verbose=0
    )
    wanted = linear().fit(
        X[:4], Y[:4], batch_size=2, validation_data=(X[4:], Y[4:]), epochs=1, shuffle=False, verbose=0
    )
    np.testing.assert_allclose(history.history["val_loss"][-1], wanted.history["val_loss"][0], rtol=1e-6)


def test_epochs_to_evaluate_after_may_be_listed() -> None:
    history = linear().fit(X, Y, validation_data=(X, Y), validation_freq=[1, 3], epochs=4, verbose=0)
    assert len(history.history["val_loss"]) == 2
    for wrong in (0, [0], "often"):
        with pytest.raises(ValueError, match="`validation_freq`, expected a positive integer"):
            linear().fit(X, Y, validation_data=(X, Y), validation_freq=wrong, verbose=0)  # type: ignore[arg-type]


def test_one_callback_needs_no_list_and_something_else_is_none() -> None:
    model, seen = linear(), []
    hook = keras.callbacks.LambdaCallback(
        on_test_end=lambda logs: seen.append("test"), on_predict_end=lambda logs=None: seen.append("predict")
    )
    model.evaluate(X, Y, verbose=0, callbacks=hook)
    model.predict(X, verbose=0, callbacks=hook)
    assert seen == ["test", "predict"]
    wrong: list[Any] = [[3], 3]
    for each in wrong:
        for call in (model.fit, model.evaluate):
            with pytest.raises(
                AttributeError, match=r"must be instances of `keras.callbacks.Callback`. Received: 3"
            ):
                call(X, Y, verbose=0, callbacks=each)


def test_another_way_to_shuffle_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`shuffle` must be True or False. Received: shuffle='batch'"):
        linear().fit(X, Y, shuffle="batch", verbose=0)  # type: ignore[arg-type]


def test_figures_of_one_batch_are_of_that_one() -> None:
    model = linear()
    model.fit(X, Y, verbose=0)
    found = model.test_on_batch(X[:4], Y[:4])
    np.testing.assert_allclose(found, model.evaluate(X[:4], Y[:4], verbose=0))
    first = model.test_on_batch(X[4:], Y[4:])
    np.testing.assert_allclose(model.train_on_batch(X[4:], Y[4:]), first)
    assert model.train_on_batch(X[4:], Y[4:])[0] < first[0]
