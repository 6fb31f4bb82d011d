"""Training, evaluation and prediction with many batches: ``fit``, ``evaluate`` and ``predict``.

Longer than 300 lines: a third of it is the documentation of TensorFlow's arguments.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from allotment.tf import nest
from allotment.tf.keras.callbacks.base import Callback, CallbackList, Logs
from allotment.tf.keras.callbacks.offered import History
from allotment.tf.keras.engine.arguments import positive
from allotment.tf.keras.engine.replicas import synchronize_copies
from allotment.tf.keras.engine.symbolic import KerasTensor
from allotment.tf.keras.engine.tracing import outputs_by_tracing
from allotment.tf.keras.engine.warnings import warn
from allotment.tf.keras.training.data import (
    Arrays,
    Batch,
    Stream,
    data_of,
    host_array,
    split_arrays,
    validation_of,
    warn_if_ended_early,
    weights_of_classes,
)
from allotment.tf.keras.training.modes import check_eager
from allotment.tf.keras.training.progress import (
    PredictionProgress,
    ProgressBar,
    TestProgress,
    TrainingProgress,
    verbosity,
)
from allotment.tf.keras.training.replicated import Runner, flat_logs
from allotment.tf.keras.training.steps import Steps, optimizer_variables
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.functions import are_recorded, inside_function
from allotment.tf.variables.variable import Variable


class Trainer(Steps):
    """A layer with ``fit``, ``evaluate`` and ``predict``."""

    _has_config = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._runner = Runner.of_scope()
        self._is_checked = False
        #: Whether a step failed, so that the replicas' copies of variables may differ.
        self._is_inconsistent = False
        self.stop_training = False
        #: The result of the last ``fit``.
        self.history: History | None = None

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Sequence[Callback] | Callback | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int | Sequence[int] = 1,
    ) -> History:
        """Train the model.

        All replicas train a model that was made in the scope of a strategy: each batch is divided among them, and the
        result equals that of one device with the whole batch, up to rounding.

        Args:
            x: Arrays or tensors whose rows are samples, in the structure of the inputs; or a ``Dataset``, or another
                iterable of batches, which are ``(x, y)`` or ``(x, y, sample_weight)``.
            y: The targets, in the same forms as ``x``.
            batch_size: Samples in a batch of all replicas together, 32 unless given.
            epochs: The number of the last epoch.
            verbose: 0 for silence, 1 for a bar on a terminal, 2 for a line each epoch; ``"auto"`` is 1.
            callbacks: One callback or several.
            validation_split: The fraction of samples, from the end, used for evaluation and not for training.
            validation_data: Data for evaluations after epochs: ``(x, y)``, ``(x, y, sample_weight)``, or batches.
            shuffle: Whether to shuffle the samples of arrays in each epoch.
            class_weight: Weights of samples by class number.
            sample_weight: A weight for each sample.
            initial_epoch: The number of epochs to skip.
            steps_per_epoch: Batches in an epoch, all unless given.
            validation_steps: Batches in an evaluation, all unless given.
            validation_batch_size: Samples in a batch of an evaluation, as in training unless given.
            validation_freq: Evaluate after each so many epochs, or after the epochs in a list, the first being 1.

        Returns:
            The losses and metrics by epoch, in ``history``. If the data end early, so does the epoch, with a warning;
            if no data are left, so does the training.

        Raises:
            ValueError: The model is not compiled, or the data are invalid.
            ResourceExhaustedError: The memory of a device is full.
        """
        self._check_compiled()
        is_evaluated = _evaluated_after(validation_freq)
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = split_arrays(x, y, sample_weight, validation_split)
        data = data_of(
            x, y, sample_weight, batch_size, steps_per_epoch, shuffle, "steps_per_epoch", class_weight
        )
        validation: Arrays | Stream | None = None
        if validation_data is not None:
            size = validation_batch_size or batch_size
            validation = validation_of(validation_data, size, validation_steps)
        self.history = History()
        params = {"verbose": verbosity(verbose), "epochs": epochs, "steps": data.steps}
        self.stop_training = False
        logs: Logs = {}
        with self._hooks(TrainingProgress, verbose, callbacks, params, self.history) as hooks:
            hooks.call("on_train_begin")
            for epoch in range(initial_epoch, epochs):
                self.reset_metrics()
                hooks.call("on_epoch_begin", epoch)
                done, found = self._train_all(self._runner.batches(data), hooks)
                if not self.stop_training:
                    warn_if_ended_early(done, data.steps, "training")
                if not done:
                    break
                if epoch == initial_epoch and _has_default_step(self) and not self.trainable_weights:
                    warn("The model does not have any trainable weights: training it changes nothing.")
                logs = _sorted(found)
                if validation is not None and is_evaluated(epoch + 1):
                    validation.restart()
                    done, found = self._test_all(validation, hooks)
                    warn_if_ended_early(done, validation.steps, "validation")
                    logs |= {f"val_{name}": value for name, value in _sorted(found).items()}
                hooks.call("on_epoch_end", epoch, logs)
                if self.stop_training:
                    break
            hooks.call("on_train_end", logs)
        return self.history

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Sequence[Callback] | Callback | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Compute the loss and the metrics. The arguments are those of ``fit``.

        Returns:
            The loss, or a list of it and the metrics; all by name with ``return_dict``.
        """
        self._check_compiled()
        data = data_of(x, y, sample_weight, batch_size, steps)
        with self._hooks(TestProgress, verbose, callbacks, {"steps": data.steps}) as hooks:
            done, logs = self._test_all(data, hooks)
            if not done:
                raise ValueError("there is no batch to evaluate the model with: the data set is empty")
            warn_if_ended_early(done, data.steps, "evaluation")
            return self._format_logs(logs, return_dict)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = "auto",
        steps: int | None = None,
        callbacks: Sequence[Callback] | Callback | None = None,
    ) -> Any:
        """Compute the outputs as arrays. The arguments are those of ``fit``."""
        check_eager()
        data = data_of(x, None, None, batch_size, steps)
        found: list[Any] = []
        with self._hooks(PredictionProgress, verbose, callbacks, {"steps": data.steps}) as hooks:
            hooks.call("on_predict_begin")
            for first, last, batches in _executions(self._runner.batches(data), self.steps_per_execution):
                hooks.call("on_predict_batch_begin", first)
                made = [self.predict_on_batch(batch.x) for batch in batches]
                hooks.call("on_predict_batch_end", last, {"outputs": _concatenate(made)})
                found += made
            hooks.call("on_predict_end")
        if not found:
            raise ValueError("there is no batch to predict the outputs of: the data set is empty")
        warn_if_ended_early(len(found), data.steps, "prediction")
        return _concatenate(found)

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Train with one batch, and return its loss and metrics as ``evaluate`` does; resets the metrics first."""
        self._check_compiled()
        if class_weight is not None:
            sample_weight = weights_of_classes(y, sample_weight, class_weight)
        self.reset_metrics()
        batch = Batch(x, y, sample_weight).map(host_array)
        return self._format_logs(self._all_logs(self._run(self._train_step(), batch)), return_dict)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """Evaluate with one batch, and return its loss and metrics as ``evaluate`` does; resets the metrics first."""
        self._check_compiled()
        self.reset_metrics()
        batch = Batch(x, y, sample_weight).map(host_array)
        return self._format_logs(self._all_logs(self._run(self._test_step(), batch)), return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """Compute the outputs for one batch as arrays."""
        check_eager()
        batch = Batch(x).map(host_array)
        return self._runner.joined(self._run(lambda part: self.predict_step(part.as_data()), batch))

    def _train_all(self, batches: Iterable[Batch], hooks: CallbackList) -> tuple[int, Logs]:
        """Train with all batches; return their number, and losses and metrics by name."""
        step = self._train_step()
        tells = _needs_logs(hooks, "on_train_batch_end")
        results: list[Any] = []
        done = 0
        for first, last, group in _executions(batches, self.steps_per_execution):
            hooks.call("on_train_batch_begin", first)
            for batch in group:
                results = self._run(step, batch)
                done += 1
            hooks.call("on_train_batch_end", last, _sorted(self._logs(results)) if tells else None)
            if self.stop_training:
                break
        return done, self._all_logs(results) if done else {}

    def _test_all(self, data: Arrays | Stream, hooks: CallbackList) -> tuple[int, Logs]:
        """Evaluate with all batches; return their number, and losses and metrics by name."""
        self.reset_metrics()
        step = self._test_step()
        tells = _needs_logs(hooks, "on_test_batch_end")
        results: list[Any] = []
        done = 0
        hooks.call("on_test_begin")
        for first, last, group in _executions(self._runner.batches(data), self.steps_per_execution):
            hooks.call("on_test_batch_begin", first)
            for batch in group:
                results = self._run(step, batch)
                done += 1
            hooks.call("on_test_batch_end", last, _sorted(self._logs(results)) if tells else None)
        logs = self._all_logs(results) if done else {}
        hooks.call("on_test_end", _sorted(logs))
        return done, logs

    def _train_step(self) -> Callable[[Batch], Any]:
        if _has_default_step(self):
            # Collecting the variables takes as long as a small layer does.
            found: dict[str, list[Variable]] = {}

            def train(batch: Batch) -> None:
                # The result of the default step is not used: the metrics have it.
                self._train(batch, found.get("all"))
                if not found:
                    # Now that the first call has made them.
                    found["all"] = self.trainable_weights

            return train
        return lambda batch: flat_logs(self.train_step(batch.as_data()))

    def _test_step(self) -> Callable[[Batch], Any]:
        if type(self).test_step is Steps.test_step:
            return self._test
        return lambda batch: flat_logs(self.test_step(batch.as_data()))

    def _run(self, step: Callable[[Batch], Any], batch: Batch) -> list[Any]:
        self._prepare(batch)
        self._samples = batch.rows
        try:
            with inside_function(are_recorded() and not self.run_eagerly):
                return self._runner.run(step, batch)
        except BaseException:
            self._is_inconsistent = True
            raise
        finally:
            self._samples = None

    def _prepare(self, batch: Batch) -> None:
        """Make the variables if there are none, and check once that the replicas can train them."""
        with self._runner.scope():
            if not self.built or not (self._is_checked or self._is_built_throughout()):
                self._build_with(batch)
        if self._is_inconsistent:
            synchronize_copies([*self.weights, *optimizer_variables(self.optimizer)])
            self._is_inconsistent = False
        if not self._is_checked:
            self._runner.check(self.weights)
            self._is_checked = True

    def _build_with(self, batch: Batch) -> None:
        """Make the variables of all layers by tracing ``call``, for the replicas of a strategy.

        Without a strategy, the first step makes them.

        Raises:
            RuntimeError: ``call`` cannot be traced.
        """
        if not self._runner.has_strategy:
            return
        samples = nest.map_structure(to_tensor, batch.part(0, batch.rows).x)
        inputs = nest.map_structure(lambda each: KerasTensor(tuple(each.shape), each.dtype), samples)
        self._build_for(inputs)
        try:
            outputs_by_tracing(self, (inputs,), {"training": False})
        except ValueError:
            raise
        except Exception as error:
            # Its frames hold the tensors of the trace.
            error.__traceback__ = None
            raise RuntimeError(
                "Unable to automatically build the model. Please build it yourself before calling "
                "fit/evaluate/predict. A model is 'built' when its variables have been created and its `self.built` "
                "attribute is True. Usually, calling the model on a batch of data is the right way to build it.\n"
                f"Exception encountered:\n'{error}'"
            ) from error

    def _all_logs(self, results: list[Any]) -> Logs:
        """Return losses and metrics over the replicas of all processes, which all have to call this."""
        with self._runner.sum_over_processes(self.metrics):
            return self._logs(results, everywhere=True)

    def _logs(self, results: list[Any], *, everywhere: bool = False) -> Logs:
        """Return losses and metrics over all batches and replicas, and the results of an overridden step.

        Without ``everywhere`` they are over this process: callbacks of other processes may not ask for a batch's logs.
        """
        logs: Logs = {name: float(value) for name, value in self.get_metrics_result().items()}
        if results and isinstance(results[0], dict):
            if not self._loss_tracker.is_used:
                logs.pop("loss", None)
            own = self._runner.averaged(results, everywhere=everywhere)
            logs = own | {name: logs[name] for name in results[0] if name in logs}
        return logs

    def _format_logs(self, logs: Logs, return_dict: bool) -> Any:
        """Return the logs as a dictionary, as the loss alone, or as a list that starts with the loss."""
        if return_dict:
            return _sorted(logs)
        # Names with the prefix of an output come last.
        known = [metric.name for metric in self._single_metrics() if metric.name in logs]
        values = [logs[name] for name in [*known, *sorted(set(logs) - set(known))]]
        return values[0] if len(values) == 1 else values

    @contextmanager
    def _hooks(
        self,
        progress: type[ProgressBar],
        verbose: Any,
        given: Sequence[Callback] | Callback | None,
        params: dict[str, Any],
        *own: Callback,
    ) -> Iterator[CallbackList]:
        """Make one list of the program's callbacks, a progress display, and ``own`` callbacks.

        The display ends with the ``with`` block.
        """
        level = verbosity(verbose)
        listed = [] if given is None else list(given) if isinstance(given, Iterable) else [given]
        if not level:
            yield CallbackList([*listed, *own], self, params)
            return
        bar = progress(params["steps"], level)
        try:
            yield CallbackList([*listed, bar, *own], self, params)
        finally:
            bar.stop()

    def _check_compiled(self) -> None:
        check_eager()
        if not self.compiled:
            raise ValueError("You must call `compile()` before using the model.")


def _executions(batches: Iterable[Batch], size: int) -> Iterator[tuple[int, int, Iterator[Batch]]]:
    """Yield batches in groups of ``steps_per_execution``: the numbers of the first and last batch, and the batches.

    The last group may be smaller but is numbered like the others, as in Keras.
    """
    rest = iter(batches)
    for first in itertools.count(0, size):
        head = next(rest, None)
        if head is None:
            return
        yield first, first + size - 1, itertools.chain((head,), itertools.islice(rest, size - 1))


def _concatenate(outputs: Sequence[Any]) -> Any:
    """Concatenate the outputs of batches; a single one may be a scalar."""
    if len(outputs) == 1:
        return outputs[0]
    return nest.map_structure(lambda *parts: np.concatenate(parts), *outputs)


def _evaluated_after(validation_freq: Any) -> Callable[[int], bool]:
    """Return a function that tells whether to evaluate after an epoch; the first epoch is 1.

    Raises:
        ValueError: ``validation_freq`` is no positive integer, and no list of them.
    """
    if isinstance(validation_freq, list | tuple):
        chosen = {positive(each, "validation_freq") for each in validation_freq}
        return chosen.__contains__
    every = positive(validation_freq, "validation_freq")
    return lambda epoch: epoch % every == 0


def _has_default_step(model: Steps) -> bool:
    """Whether the program has not overridden ``train_step``."""
    return type(model).train_step is Steps.train_step


def _needs_logs(hooks: CallbackList, hook: str) -> bool:
    """Whether a callback uses the logs of each batch."""
    return hooks.overrides(hook, lambda each: isinstance(each, ProgressBar) and not each.moves)


def _sorted(logs: Logs) -> Logs:
    """Sort logs by name, as Keras shows them."""
    return dict(sorted(logs.items()))


__all__ = ["Trainer"]
