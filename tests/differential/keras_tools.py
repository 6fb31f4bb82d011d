"""Helper functions for generated programs that use Keras: fixed weights, losses as arrays, test callbacks."""

from typing import Any

import numpy as np

from operands import operand


class KerasTools:
    """Helper functions for Keras, bound to one package."""

    def __init__(self, tf: Any) -> None:
        self._keras = tf.keras

    def fixed(self, model: Any) -> Any:
        """Set a model's weights to values that depend only on their shapes, and return the model."""
        weights = model.get_weights()
        model.set_weights(
            [operand("float32", w.shape, "unit", i).astype(w.dtype) for i, w in enumerate(weights)]
        )
        return model

    def figures(self, found: Any) -> Any:
        """Convert a history, or losses and metrics in a dictionary or list, to float32 arrays."""
        found = getattr(found, "history", found)
        if isinstance(found, dict):
            return {name: np.asarray(value, np.float32) for name, value in found.items()}
        if isinstance(found, list):
            return [np.asarray(value, np.float32) for value in found]
        return np.asarray(found, np.float32)

    def state(self, owner: Any, *names: str) -> list[Any]:
        """Return numeric attributes of an object as float32 arrays."""
        found = [getattr(owner, name) for name in names]
        return [None if each is None else np.asarray(each, np.float32) for each in found]

    def line(self) -> Any:
        """Return a compiled model with one weight and learning rate 0."""
        keras = self._keras
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
        model.set_weights([np.array([[0.5]], "float32")])
        model.compile(keras.optimizers.SGD(0.0), "mse", run_eagerly=True)
        return model

    def given(self, values: Any) -> Any:
        """Return a callback that sets the log ``v`` of each epoch, and the weight of ``line`` to the epoch's number."""

        class Given(self._keras.callbacks.Callback):  # type: ignore[misc, name-defined]
            def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
                self.model.set_weights([np.array([[float(epoch)]], "float32")])

            def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
                logs["v"] = values[epoch]

        return Given()

    def recorder(self, seen: list[Any], stop: int | None = None, stop_batch: int | None = None) -> Any:
        """Return a callback that appends each hook's call, with its number and the names in its logs, to a list.

        Args:
            seen: The list.
            stop: The epoch after which the callback stops the training.
            stop_batch: The batch after which the callback stops the training.
        """

        class Recorder(self._keras.callbacks.Callback):  # type: ignore[misc, name-defined]
            pass

        def hook(name: str) -> Any:
            def record(self: Any, *arguments: Any, logs: Any = None) -> None:
                number = [each for each in arguments if isinstance(each, int)]
                names = [sorted(each) for each in (*arguments, logs) if isinstance(each, dict)]
                seen.append([name, number, names[0] if names else []])
                if name == "on_train_begin":
                    seen.append(sorted(self.params))
                if (name == "on_epoch_end" and number == [stop]) or (
                    name == "on_train_batch_end" and number == [stop_batch]
                ):
                    self.model.stop_training = True

            return record

        for what in ("train", "test", "predict", "epoch", "train_batch", "test_batch", "predict_batch"):
            for end in ("begin", "end"):
                setattr(Recorder, f"on_{what}_{end}", hook(f"on_{what}_{end}"))
        return Recorder()
