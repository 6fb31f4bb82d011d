"""The tools of programs about Keras: fixed weights, figures as arrays, callbacks that set or record figures."""

from typing import Any

import numpy as np

from operands import operand


class KerasTools:
    """The tools over one package."""

    def __init__(self, tf: Any) -> None:
        self._keras = tf.keras

    def fixed(self, model: Any) -> Any:
        """Give a model weights that follow from their shapes, and return it."""
        weights = model.get_weights()
        model.set_weights(
            [operand("float32", w.shape, "unit", i).astype(w.dtype) for i, w in enumerate(weights)]
        )
        return model

    def figures(self, found: Any) -> Any:
        """A history, or losses and metrics by name or in a list, as arrays of float32."""
        found = getattr(found, "history", found)
        if isinstance(found, dict):
            return {name: np.asarray(value, np.float32) for name, value in found.items()}
        if isinstance(found, list):
            return [np.asarray(value, np.float32) for value in found]
        return np.asarray(found, np.float32)

    def state(self, owner: Any, *names: str) -> list[Any]:
        """Attributes that are numbers, as arrays of float32."""
        found = [getattr(owner, name) for name in names]
        return [None if each is None else np.asarray(each, np.float32) for each in found]

    def line(self) -> Any:
        """A compiled model with one weight, which training does not change."""
        keras = self._keras
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
        model.set_weights([np.array([[0.5]], "float32")])
        model.compile(keras.optimizers.SGD(0.0), "mse", run_eagerly=True)
        return model

    def given(self, values: Any) -> Any:
        """A callback that sets the figure ``v`` of each epoch, and the weight of ``line`` to the epoch's number."""

        class Given(self._keras.callbacks.Callback):  # type: ignore[misc, name-defined]
            def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
                self.model.set_weights([np.array([[float(epoch)]], "float32")])

            def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
                logs["v"] = values[epoch]

        return Given()

    def recorder(self, seen: list[Any], stop: int | None = None, stop_batch: int | None = None) -> Any:
        """A callback that appends each call of a hook, with its number and the names of figures, to a list.

        It stops the training at the end of an epoch or of a batch.
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
