"""The base class of callbacks, lists of callbacks, and the part of a model that they use."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

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


__all__ = ["Callback", "CallbackList", "Logs", "TrainedModel"]
