"""Callbacks: objects whose methods ``fit``, ``evaluate`` and ``predict`` call. As ``keras.callbacks``."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from allotment.tf.keras.engine.warnings import warn
from allotment.tf.names.missing_names import module_getattr
from allotment.tf.variables.variable import Variable

Logs = dict[str, float]


class MonitoredMetric(Protocol):
    """The part of a metric that callbacks use."""

    name: str
    #: 1 if its value should rise, -1 if it should fall, 0 if that is not known.
    direction: int


class TrainedModel(Protocol):
    """The part of ``Model`` that callbacks use: ``Model`` is made of what calls them."""

    name: str
    optimizer: Any
    stop_training: bool

    @property
    def weights(self) -> list[Variable]:
        """All variables."""

    def get_weights(self) -> list[Any]:
        """Return the values of all variables as arrays."""

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set all variables."""

    def save_weights(self, filepath: Any, overwrite: bool = True) -> None:
        """Write all variables to an ``.npz`` file."""

    def _single_metrics(self) -> Sequence[MonitoredMetric]: ...


class Callback:
    """The base class of callbacks. As ``keras.callbacks.Callback``.

    Its methods do nothing; a subclass overrides some. ``logs`` are losses and metrics by name.
    """

    def __init__(self) -> None:
        #: Arguments of ``fit``: verbosity, number of epochs and steps.
        self.params: dict[str, Any] = {}
        self._model: TrainedModel | None = None

    @property
    def model(self) -> TrainedModel:
        """The model that is trained."""
        assert self._model is not None, "a callback has a model while one is trained"
        return self._model

    def set_params(self, params: dict[str, Any]) -> None:
        """Set the arguments of ``fit``."""
        self.params = params

    def set_model(self, model: TrainedModel) -> None:
        """Set the model."""
        self._model = model

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Called before the first epoch."""

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Called after the last epoch."""

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Called before an epoch."""

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Called after an epoch, validation included."""

    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """An older name of ``on_train_batch_begin``."""

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """An older name of ``on_train_batch_end``."""

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Called before a batch of training."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Called after a batch of training."""
        self.on_batch_end(batch, logs)

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
    """A list of callbacks whose methods are called in order.

    Args:
        callbacks: The callbacks.
        model: The model that is trained.
        params: Arguments of ``fit``.

    Raises:
        AttributeError: One of them lacks the methods of a callback.
    """

    def __init__(self, callbacks: Iterable[Callback], model: TrainedModel, params: dict[str, Any]) -> None:
        self._callbacks = list(callbacks)
        for callback in self._callbacks:
            if not (hasattr(callback, "set_model") and hasattr(callback, "set_params")):
                raise AttributeError(
                    f"`callbacks` must be instances of `keras.callbacks.Callback`. Received: {callback!r} "
                    f"(of type {type(callback)})"
                )
        for callback in self._callbacks:
            callback.set_params(params)
            callback.set_model(model)

    def call(self, hook: str, *args: Any) -> None:
        """Call a method of all callbacks; ``logs`` is an empty dictionary if it is not given."""
        positions = 1 if "epoch" in hook or "batch" in hook else 0
        if len(args) == positions:
            args = (*args, {})
        for callback in self._callbacks:
            getattr(callback, hook)(*args)

    def overrides(self, hook: str, except_for: Callable[[Callback], bool]) -> bool:
        """Whether any callback, except those for which ``except_for`` is true, overrides a method."""
        names = (hook, hook.replace("_train_batch_", "_batch_"))
        return any(
            name in vars(each) or getattr(type(each), name, None) is not getattr(Callback, name)
            for each in self._callbacks
            if not except_for(each)
            for name in names
        )


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


class TerminateOnNaN(Callback):
    """Ends the training when the loss is NaN or infinite. As ``keras.callbacks.TerminateOnNaN``.

    Args:
        raise_error: Whether to raise an error instead.
    """

    def __init__(self, raise_error: bool = False) -> None:
        super().__init__()
        self.raise_error = raise_error

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Check the loss.

        Raises:
            RuntimeError: It is NaN or infinite, and ``raise_error`` is set.
        """
        loss = (logs or {}).get("loss")
        if loss is None or np.isfinite(loss):
            return
        if self.raise_error:
            raise RuntimeError(f"NaN or Inf loss encountered at batch {batch}. Loss value: {loss}.")
        print(f"Batch {batch}: Invalid loss, terminating training")
        self.model.stop_training = True


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


__all__ = [
    "Callback",
    "CallbackList",
    "EarlyStopping",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "TerminateOnNaN",
]

__getattr__ = module_getattr(__name__, __all__)
