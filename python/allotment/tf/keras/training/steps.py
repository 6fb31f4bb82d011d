"""One step of a model: training, evaluation or prediction with a batch, or with a replica's part of one."""

from collections.abc import Mapping, Sequence
from typing import Any

from allotment.tf import nest
from allotment.tf.differentiation.gradient_tape import GradientTape
from allotment.tf.keras import optimizers
from allotment.tf.keras.engine.arguments import positive
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.engine.replicas import number_of_replicas, run_once, sum_over_replicas
from allotment.tf.keras.engine.tracking import without_repeats
from allotment.tf.keras.metrics.metric import Mean, Metric
from allotment.tf.keras.training.compiled import CompiledLoss, CompiledMetrics, Outputs
from allotment.tf.keras.training.data import Batch
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.functions import are_recorded
from allotment.tf.ops.indexing.indexed_slices import map_values
from allotment.tf.ops.math.arithmetic import add, multiply
from allotment.tf.ops.reduction.reduce import reduce_mean, reduce_sum
from allotment.tf.ops.reduction.sums import add_n
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.tf_function import warn_jit_compile_ignored
from allotment.tf.training.optimizer import Optimizer as TrainOptimizer
from allotment.tf.variables.variable import Variable


class Steps(Layer):
    """A layer with ``compile`` and with the steps that train, evaluate and predict with one batch."""

    _has_config = True
    _internal = Layer._internal | {
        "optimizer",
        "loss",
        "history",
        "_loss_of",
        "_loss_tracker",
        "_metrics_of",
        "_part_trackers",
        "_runner",
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.compiled = False
        self.run_eagerly = False
        #: The number of batches between two calls of the callbacks.
        self.steps_per_execution = 1
        self.optimizer: Any = None
        self.loss: Any = None
        self._loss_of: CompiledLoss | None = None
        # In the order of `metrics`.
        self._loss_tracker = Mean("loss")
        self._metrics_of: CompiledMetrics | None = None
        #: The losses of the outputs by name, if several outputs have one.
        self._part_trackers: dict[str, Mean] = {}
        #: The number of samples in the current batch, of all replicas together.
        self._samples: int | None = None

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Any = None,
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: Any = "auto",
        auto_scale_loss: bool = True,  # noqa: ARG002 - losses are not scaled
    ) -> None:
        """Configure the training.

        Args:
            optimizer: An optimizer of Keras or of ``tf.train``, or its name.
            loss: A loss, its name, or a function of ``y_true`` and ``y_pred``; several for several outputs, by
                position or name.
            loss_weights: A number for the loss of each output.
            metrics: Metrics, their names, or functions; by output if there are several.
            weighted_metrics: As ``metrics``; weights of samples count in them.
            run_eagerly: Whether losses treat the model's operations as eager ones. A model always runs eagerly here;
                unless it is told so, a cross entropy looks at the operation that made its predictions, as in a graph.
            steps_per_execution: The number of batches between two calls of the callbacks.
            jit_compile: Has no effect; ``True`` logs a warning once.
            auto_scale_loss: Has no effect.

        Raises:
            ValueError: An unknown optimizer, loss or metric.
        """
        self.steps_per_execution = positive(steps_per_execution, "steps_per_execution")
        self.run_eagerly = bool(run_eagerly)
        if jit_compile is True:
            warn_jit_compile_ignored()
        self.optimizer = optimizers.get(optimizer)
        self.loss = loss
        outputs = Outputs(getattr(self, "output_names", None))
        self._loss_of = None if loss is None else CompiledLoss(loss, loss_weights, outputs)
        has_metrics = metrics is not None or weighted_metrics is not None
        self._metrics_of = CompiledMetrics(metrics, weighted_metrics, outputs) if has_metrics else None
        self._part_trackers = {}
        self.compiled = True

    @property
    def metrics(self) -> list[Metric]:
        """The loss, the compiled metrics as one, and the metrics among the attributes and in layers inside.

        Those of a model inside do not count.
        """
        found: list[Metric] = []
        if self.compiled:
            compiled = [] if self._metrics_of is None else [self._metrics_of]
            found += [self._loss_tracker, *compiled, *self._part_trackers.values()]
        inner = (layer for layer in self._with_sublayers() if not isinstance(layer, Steps))
        metrics = (metric for layer in inner for metric in layer._tracker.metrics)
        return without_repeats(iter([*found, *self._tracker.metrics, *metrics]))

    def _single_metrics(self) -> list[Metric]:
        """The metrics, with the compiled metrics one by one."""
        return [metric for each in self.metrics for metric in each._members()]

    @property
    def metrics_names(self) -> list[str]:
        """The names of ``metrics``."""
        return [metric.name for metric in self.metrics]

    def reset_metrics(self) -> None:
        """Reset the state of all metrics."""
        for metric in self.metrics:
            metric.reset_state()

    def get_metrics_result(self) -> dict[str, Any]:
        """Return the loss and the metrics over the batches since the last reset, by name."""
        results: dict[str, Any] = {}
        for metric in self.metrics:
            result = metric.result()
            results |= result if isinstance(result, dict) else {metric.name: result}
        return results

    def compute_loss(
        self,
        x: Any = None,  # noqa: ARG002 - for a model that overrides it
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,  # noqa: ARG002 - for a model that overrides it
    ) -> EagerTensor:
        """Compute the loss; a replica computes the part of its samples, so that the parts add up to the loss.

        Raises:
            ValueError: The model has no loss.
        """
        own = self.losses
        if self._loss_of is None and not own:
            raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`.")
        rows = len(nest.flatten(y_pred)[0])
        samples = rows * number_of_replicas() if self._samples is None else self._samples
        # Each replica adds its share of the losses that do not depend on samples.
        added = (
            multiply(add_n([reduce_sum(each) if each.ndim else each for each in own]), rows / max(samples, 1))
            if own
            else None
        )
        if self._loss_of is None:
            assert added is not None
            return added
        total, parts = self._loss_of(y, y_pred, sample_weight, samples)
        if parts:
            self._track_parts(parts, rows, samples)
        return total if added is None else add(total, cast(added, total._dtype))

    def _track_parts(self, parts: Mapping[str, EagerTensor], rows: int, samples: int) -> None:
        if not self._part_trackers:
            run_once(lambda: self._part_trackers.update({name: Mean(f"{name}_loss") for name in parts}))
        if not rows:
            return
        # As in Keras. Its graphs do not know the number of samples: there each batch has the same weight.
        counts = self.run_eagerly or not are_recorded()
        scale, weight = (samples, rows) if counts else (1, 1 / number_of_replicas())
        for name, part in parts.items():
            self._part_trackers[name].add(_mean_value(part) * scale, weight)

    def _track(self, loss: EagerTensor, y_pred: Any) -> None:
        rows = len(nest.flatten(y_pred)[0])
        if rows:
            samples = rows if self._samples is None or loss.ndim else self._samples
            self._loss_tracker.add(_mean_value(loss) * samples, rows)

    def compute_metrics(
        self,
        x: Any,  # noqa: ARG002 - for a model that overrides it
        y: Any,
        y_pred: Any,
        sample_weight: Any = None,
    ) -> dict[str, Any]:
        """Update the metrics with a batch, and return the loss and the metrics by name."""
        self._update_metrics(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def _update_metrics(self, y: Any, y_pred: Any, sample_weight: Any) -> None:
        if self._metrics_of is not None:
            self._metrics_of.update_state(y, y_pred, sample_weight)

    def train_step(self, data: Any) -> dict[str, Any]:
        """Train with a batch, or with a replica's part of it. A subclass may override it.

        Args:
            data: ``(x,)``, ``(x, y)`` or ``(x, y, sample_weight)``.

        Returns:
            Values by name. With several replicas, values of ``metrics`` are over all of them, others are averaged. The
            value of ``compute_loss`` is the part of one replica: all parts add up to the loss.
        """
        self._train(Batch(*data))
        return self.get_metrics_result()

    def _train(self, batch: Batch, variables: Sequence[Variable] | None = None) -> None:
        """Train the variables with a batch; without them those of the model, which the first call may make."""
        x, y, sample_weight = batch
        if variables is None and self._is_built_throughout():
            variables = self.trainable_weights
        if variables is not None and not variables:
            self._test(batch, training=True)
            return
        with GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True)
        self._track(loss, y_pred)
        variables = self.trainable_weights if variables is None else variables
        if not variables:
            self._update_metrics(y, y_pred, sample_weight)
            return
        gradients = tape.gradient(loss, variables)
        if batch.rows == 0:
            # The mean of no samples is NaN, and so are the gradients: they must not count.
            gradients = [None if each is None else map_values(zeros_like, each) for each in gradients]
        # Free everything that the metrics do not need before the variables change.
        del tape, loss, x
        apply_gradients(self.optimizer, gradients, variables)
        del gradients
        self._update_metrics(y, y_pred, sample_weight)

    def test_step(self, data: Any) -> dict[str, Any]:
        """Evaluate with a batch, or with a replica's part of it. See ``train_step``."""
        self._test(Batch(*data))
        return self.get_metrics_result()

    def _test(self, batch: Batch, *, training: bool = False) -> None:
        x, y, sample_weight = batch
        y_pred = self(x, training=training)
        if self._loss_of is not None:
            loss = self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
            self._track(loss, y_pred)
        self._update_metrics(y, y_pred, sample_weight)

    def predict_step(self, data: Any) -> Any:
        """Compute the output for a batch, or for a replica's part of it. See ``train_step``."""
        return self(data[0], training=False)


def _mean_value(loss: EagerTensor) -> float:
    """Return a loss as a number: the mean of a loss that is not reduced."""
    return float(reduce_mean(loss) if loss.ndim else loss)


def apply_gradients(optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
    """Update variables with an optimizer, by gradients of the replicas' parts of a loss."""
    pairs = list(zip(gradients, variables, strict=True))
    if not isinstance(optimizer, optimizers.Optimizer | TrainOptimizer):
        # Optimizers of Keras and ``tf.train`` sum over replicas themselves; those of a program may not.
        pairs = [pair for pair in pairs if pair[0] is not None]
        sums = sum_over_replicas([gradient for gradient, _ in pairs])
        pairs = [(each, variable) for each, (_, variable) in zip(sums, pairs, strict=True)]
    optimizer.apply_gradients(pairs)


def optimizer_variables(optimizer: Any) -> Sequence[Variable]:
    """Return the variables of an optimizer of Keras or of ``tf.train``."""
    found = getattr(optimizer, "variables", ())
    return tuple(found() if callable(found) else found)


__all__ = ["Steps", "apply_gradients", "optimizer_variables"]
