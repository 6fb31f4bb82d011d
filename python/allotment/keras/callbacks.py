"""What is called while a model is trained. As ``keras.callbacks``, those that are offered."""

import inspect
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allotment.missing_names import absent

if TYPE_CHECKING:
    from allotment.keras.engine.model import Model

Logs = dict[str, float]

_log: Final = logging.getLogger("allotment.keras")


class Callback:
    """Is called while a model is trained. As ``keras.callbacks.Callback``.

    Each method does nothing until a class of your own says what. ``logs`` are losses and metrics by name.
    """

    def __init__(self) -> None:
        #: What ``fit`` was told.
        self.params: dict[str, Any] = {}
        self._model: Model | None = None

    @property
    def model(self) -> "Model":
        """The model that is trained."""
        assert self._model is not None, "a callback has a model while one is trained"
        return self._model

    def set_params(self, params: dict[str, Any]) -> None:
        """Take what ``fit`` was told."""
        self.params = params

    def set_model(self, model: "Model") -> None:
        """Take the model."""
        self._model = model

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Called before the first epoch."""

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Called after the last epoch."""

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Called before an epoch."""

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Called after an epoch, validation included."""

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Called before a batch of training."""

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Called after a batch of training."""

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """Called before an evaluation."""

    def on_test_end(self, logs: Logs | None = None) -> None:
        """Called after an evaluation."""

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Called before a batch of an evaluation."""

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Called after a batch of an evaluation."""

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """Called before predictions."""

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """Called after predictions."""

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Called before a batch of predictions."""

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Called after a batch of predictions."""


class CallbackList:
    """Several callbacks as one.

    Args:
        callbacks: The callbacks.
        model: The model that is trained.
        params: What ``fit`` was told.

    Raises:
        TypeError: One of them is no callback.
    """

    def __init__(self, callbacks: Iterable[Callback], model: "Model", params: dict[str, Any]) -> None:
        self._callbacks = list(callbacks)
        for callback in self._callbacks:
            if not isinstance(callback, Callback):
                raise TypeError(
                    f"`callbacks` must be instances of `keras.callbacks.Callback`. Received: {callback!r} "
                    f"(of type {type(callback)})"
                )
        for callback in self._callbacks:
            callback.set_params(params)
            callback.set_model(model)

    def call(self, hook: str, *args: Any) -> None:
        """Call one method of all; without numbers with an empty dictionary, as the user's own have that argument."""
        positions = 1 if "epoch" in hook or "batch" in hook else 0
        if len(args) == positions:
            args = (*args, {})
        for callback in self._callbacks:
            getattr(callback, hook)(*args)

    def overrides(self, hook: str, except_for: Callable[[Callback], bool]) -> bool:
        """Whether any of them, with exceptions, does something in a method."""
        return any(
            hook in vars(each) or getattr(type(each), hook) is not getattr(Callback, hook)
            for each in self._callbacks
            if not except_for(each)
        )


class History(Callback):
    """Keeps the losses and metrics of all epochs: what ``fit`` returns. As ``keras.callbacks.History``."""

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[float]] = {}
        self.epoch: list[int] = []

    def on_train_begin(self, logs: Logs | None = None) -> None:  # noqa: ARG002 - a hook's signature
        """Begin anew with the epochs; the history goes on."""
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Keep an epoch's numbers."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class LambdaCallback(Callback):
    """Calls functions. As ``keras.callbacks.LambdaCallback``.

    Args:
        **hooks: Functions by the name of the method in whose place they are called, such as ``on_epoch_end``.

    Raises:
        TypeError: There is no method of this name.
    """

    def __init__(self, **hooks: Callable[..., Any] | None) -> None:
        super().__init__()
        for name, function in hooks.items():
            if not (name.startswith("on_") and hasattr(Callback, name)):
                raise TypeError(f"a callback has no method {name!r}")
            if function is not None:
                setattr(self, name, function)


class EarlyStopping(Callback):
    """Ends the training when a number gets no better. As ``keras.callbacks.EarlyStopping``.

    Args:
        monitor: The name of the loss or metric.
        min_delta: By how much it has to be better to count.
        patience: How many epochs in a row may be no better.
        verbose: With 1, print when the training is ended.
        mode: ``"min"``, ``"max"``, or ``"auto"`` to tell by the name.
        baseline: What has to be reached at all.
        restore_best_weights: Whether the model gets the variables of the best epoch back.
        start_from_epoch: The first epochs do not count.

    Raises:
        ValueError: Another mode.
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
            raise ValueError(f"mode must be 'auto', 'min' or 'max', not {mode!r}")
        self.monitor, self.patience, self.verbose = monitor, patience, verbose
        self.min_delta, self.baseline = abs(min_delta), baseline
        self.restore_best_weights, self.start_from_epoch = restore_best_weights, start_from_epoch
        larger = mode == "max" or (mode == "auto" and ("acc" in monitor or monitor.endswith("auc")))
        self._sign = 1 if larger else -1
        self._forget()

    def _forget(self) -> None:
        self.best: float | None = None
        self.best_weights: list[Any] | None = None
        self.best_epoch = self.wait = self.stopped_epoch = 0

    def on_train_begin(self, logs: Logs | None = None) -> None:  # noqa: ARG002 - a hook's signature
        """Forget what another training has reached."""
        self._forget()

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Look at the number."""
        value = (logs or {}).get(self.monitor)
        if value is None:
            _log.warning(
                "Early stopping conditioned on metric `%s` which is not available. Available metrics are: %s",
                self.monitor,
                ",".join(logs or ()),
            )
            return
        if epoch < self.start_from_epoch:
            return
        self.wait += 1
        if self._is_better(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self._is_better(value, self.baseline):
                self.wait = 0
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def _is_better(self, value: float, than: float | None) -> bool:
        return than is None or bool(self._sign * (value - than) > self.min_delta)

    def on_train_end(self, logs: Logs | None = None) -> None:  # noqa: ARG002 - a hook's signature
        """Say that it has ended, and bring the best variables back."""
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.restore_best_weights and self.best_weights is not None:
            self.model.set_weights(self.best_weights)


class TerminateOnNaN(Callback):
    """Ends the training when the loss is no number any more. As ``keras.callbacks.TerminateOnNaN``."""

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Look at the loss."""
        loss = (logs or {}).get("loss")
        if loss is not None and not np.isfinite(loss):
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch. As ``keras.callbacks.LearningRateScheduler``.

    Args:
        schedule: Gets the number of the epoch, the first being 0, and the learning rate, and returns a new one; or
            only gets the number.
        verbose: With 1, print what is set.
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
        """Put the learning rate among the numbers."""
        if logs is not None:
            logs["learning_rate"] = float(self.model.optimizer.learning_rate)


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with two positions."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:
        # Python does not know the arguments of everything that is written in C.
        return True
    return True


__all__ = [
    "Callback",
    "CallbackList",
    "EarlyStopping",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "TerminateOnNaN",
]

__getattr__ = absent(__name__, __all__)
