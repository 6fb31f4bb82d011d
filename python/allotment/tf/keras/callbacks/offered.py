"""The callbacks of Keras that are offered."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from allotment.tf.keras.callbacks.base import Callback, Logs, TrainedModel
from allotment.tf.keras.engine.warnings import warn


class History(Callback):
    """Records the losses and metrics of all epochs; ``fit`` returns it. As ``keras.callbacks.History``."""

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[float]] = {}
        self.epoch: list[int] = []

    def on_train_begin(self, logs: Logs | None = None) -> None:  # noqa: ARG002 - a hook's signature
        """Clear the list of epochs, and keep the history."""
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Record the losses and metrics of an epoch."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class LambdaCallback(Callback):
    """Calls functions. As ``keras.callbacks.LambdaCallback``.

    Args:
        **hooks: Functions by the name of the method that they replace, such as ``on_epoch_end``.

    Raises:
        TypeError: A callback has no method of this name.
    """

    def __init__(self, **hooks: Callable[..., Any] | None) -> None:
        super().__init__()
        for name, function in hooks.items():
            if not (name.startswith("on_") and hasattr(Callback, name)):
                raise TypeError(f"a callback has no method {name!r}")
            if function is not None:
                setattr(self, name, function)


class EarlyStopping(Callback):
    """Ends the training when a metric stops improving. As ``keras.callbacks.EarlyStopping``.

    Args:
        monitor: The name of the loss or metric.
        min_delta: The smallest change that counts as an improvement.
        patience: The number of epochs without an improvement after which the training ends.
        verbose: With 1, print when the training ends.
        mode: ``"min"``, ``"max"``, or ``"auto"``: the direction of the loss, or of the metric of this name.
        baseline: A value to reach; until then, epochs count as without an improvement.
        restore_best_weights: Whether the model gets the variables of the best epoch at the end.
        start_from_epoch: The number of first epochs that do not count.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None:
        super().__init__()
        if mode not in ("auto", "min", "max"):
            warn(f"EarlyStopping mode {mode!r} is none of 'auto', 'min' and 'max': mode='auto' is used.")
            mode = "auto"
        self.monitor, self.mode, self.patience, self.verbose = monitor, mode, patience, verbose
        self.min_delta, self.baseline = abs(min_delta), baseline
        self.restore_best_weights, self.start_from_epoch = restore_best_weights, start_from_epoch
        #: 1 if the metric should rise and -1 if it should fall; 0 until that is known.
        self._sign = {"min": -1, "max": 1, "auto": 0}[mode]
        self._forget()

    def _forget(self) -> None:
        self.best: float | None = None
        self.best_weights: list[Any] | None = None
        self.best_epoch = self.wait = self.stopped_epoch = 0

    def on_train_begin(self, logs: Logs | None = None) -> None:  # noqa: ARG002 - a hook's signature
        """Reset the state."""
        self._forget()

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Compare the metric with its best value.

        Raises:
            ValueError: ``mode`` is ``"auto"`` and no metric of this name has a direction.
        """
        # Not earlier: the first batch makes the metrics.
        self._sign = self._sign or _direction_of(self.monitor, self.model)
        value = (logs or {}).get(self.monitor)
        if value is None:
            warn(
                f"Early stopping conditioned on metric `{self.monitor}` which is not available. Available metrics are: "
                f"{','.join(logs or ())}"
            )
        if value is None or epoch < self.start_from_epoch:
            return
        if self.restore_best_weights and self.best_weights is None:
            # NaN is better than no value.
            self.best_weights, self.best_epoch = self.model.get_weights(), epoch
        self.wait += 1
        if self._is_better(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self._is_better(value, self.baseline):
                self.wait = 0
        elif self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def _is_better(self, value: float, than: float | None) -> bool:
        if than is None:
            return True
        # In single precision, like the metric itself.
        shifted, reference = np.float32(value - self._sign * self.min_delta), np.float32(than)
        return bool(shifted > reference if self._sign > 0 else shifted < reference)

    def on_train_end(self, logs: Logs | None = None) -> None:  # noqa: ARG002 - a hook's signature
        """Report that the training has ended early, and restore the best variables."""
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.restore_best_weights and self.best_weights is not None:
            if self.verbose:
                print(f"Restoring model weights from the end of the best epoch: {self.best_epoch + 1}.")
            self.model.set_weights(self.best_weights)


def _direction_of(monitor: str, model: TrainedModel) -> int:
    """Return 1 if a metric should rise, -1 if it should fall."""
    name = monitor.removeprefix("val_")
    directions = {each.name: each.direction for each in model._single_metrics() if each.direction}
    found = directions.get(name, -1 if name == "loss" else 0)
    if not found:
        raise ValueError(
            f"EarlyStopping cannot tell whether {monitor!r} should be maximized or minimized: pass mode='max' or "
            "mode='min'."
        )
    return found


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch. As ``keras.callbacks.LearningRateScheduler``.

    Args:
        schedule: A function of the epoch, the first being 0, and of the learning rate, that returns a new one; or
            a function of the epoch only.
        verbose: With 1, print the learning rate.
    """

    def __init__(self, schedule: Callable[..., Any], verbose: int = 0) -> None:
        super().__init__()
        self.schedule, self.verbose = schedule, verbose
        self._takes_rate = _takes_two(schedule)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:  # noqa: ARG002 - a hook's signature
        """Set the learning rate.

        Raises:
            ValueError: The schedule returns no float.
            NotImplementedError: The optimizer has no learning rate to set.
        """
        optimizer = self.model.optimizer
        if not hasattr(optimizer, "learning_rate"):
            raise NotImplementedError(
                f"LearningRateScheduler takes an optimizer of keras.optimizers, not {type(optimizer).__name__}"
            )
        old = float(optimizer.learning_rate)
        rate = self.schedule(epoch, old) if self._takes_rate else self.schedule(epoch)
        if not isinstance(rate, float | np.floating):
            raise ValueError(f"The output of the `schedule` function should be a float. Got: {rate!r}")
        optimizer.learning_rate = float(rate)
        if self.verbose:
            print(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {float(rate)}.")

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:  # noqa: ARG002 - a hook's signature
        """Add the learning rate to the logs."""
        if logs is not None:
            logs["learning_rate"] = float(self.model.optimizer.learning_rate)


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with two positional arguments."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:
        # Some functions written in C have no signature.
        return True
    return True


__all__ = ["EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler"]
