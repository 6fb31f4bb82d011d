"""What a model is compiled with: a loss and metrics for each output."""

from collections.abc import Sequence
from typing import Any

from allotment import nest
from allotment.keras import losses, metrics
from allotment.keras.engine.replicas import PerReplicaNumber, once
from allotment.keras.metrics.metric import Metric
from allotment.ops.array import cast
from allotment.ops.math import add, multiply
from allotment.tensor import EagerTensor


class Outputs:
    """The outputs of a model by name, and what was given for them in their order.

    Args:
        names: The names, ``None`` for outputs that have none.
    """

    def __init__(self, names: Sequence[str] | None) -> None:
        self.names = list(names) if names else None

    def ordered(self, given: Any, what: str, count: int) -> list[Any]:
        """One of what was given for each output: by name, by position, or the same for all.

        Raises:
            ValueError: A name that no output has, or not as many as there are.
        """
        if isinstance(given, dict):
            names = self.names or []
            unknown = [name for name in given if name not in names]
            if unknown:
                raise ValueError(
                    f"In the dict argument `{what}`, key {unknown[0]!r} does not correspond to any model output. "
                    f"Received:\n{what}={given}"
                )
            return [given.get(name) for name in names]
        if isinstance(given, list | tuple):
            if len(given) != count:
                raise ValueError(
                    f"For a model with multiple outputs, when providing the `{what}` argument as a list, it should "
                    f"have as many entries as the model has outputs. Received:\n{what}={given}\nof length {len(given)} "
                    f"whereas the model has {count} outputs."
                )
            return list(given)
        return [given] * count

    def values(self, structure: Any, count: int) -> list[Any]:
        """Targets or weights in the order of the outputs: by name or by position.

        Raises:
            ValueError: There are not as many as outputs.
        """
        if structure is None:
            return [None] * count
        if isinstance(structure, dict) and self.names:
            return [structure.get(name) for name in self.names]
        flat = nest.flatten(structure)
        if len(flat) != count:
            raise ValueError(
                f"the model has {count} output(s), but there are targets or weights for {len(flat)}: pass one array "
                "for each, in a list or by name"
            )
        return flat


class CompiledLoss:
    """The losses of the outputs, each with its weight.

    Args:
        loss: A loss, or several.
        loss_weights: A number for each.
        outputs: The outputs.
    """

    def __init__(self, loss: Any, loss_weights: Any, outputs: Outputs) -> None:
        self._loss, self._weights, self._outputs = loss, loss_weights, outputs
        self._made: list[tuple[losses.Loss | None, float]] | None = None
        # Names are checked when a model is compiled, as far as that does not take outputs.
        for each in nest.flatten(loss):
            losses.get(each)

    def __call__(
        self, y: Any, y_pred: Any, sample_weight: Any, samples: int
    ) -> tuple[EagerTensor, list[EagerTensor]]:
        """Compute what some samples add to the loss of a batch with ``samples`` of them: in all, and by output.

        Raises:
            ValueError: There is nothing to compare predictions with.
        """
        predicted = nest.flatten(y_pred)
        count = len(predicted)
        if self._made is None:
            given = self._outputs.ordered(self._loss, "loss", count)
            shares = self._outputs.ordered(self._weights, "loss_weights", count)
            self._made = [
                (None if each is None else losses.as_object(each), 1.0 if share is None else float(share))
                for each, share in zip(given, shares, strict=True)
            ]
        true, weights = self._outputs.values(y, count), self._outputs.values(sample_weight, count)
        total: EagerTensor | None = None
        parts = []
        for (loss, share), own, made, weight in zip(self._made, true, predicted, weights, strict=True):
            if loss is None:
                continue
            if own is None:
                raise ValueError(
                    f"there is no `y` to compute the loss {loss.name!r} with: pass targets, or no loss"
                )
            part = loss.part(own, made, weight, samples)
            parts.append(part)
            if share != 1.0:
                part = multiply(part, share)
            total = part if total is None else add(total, cast(part, total._dtype))
        if total is None:
            raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`.")
        return total, parts


class CompiledMetrics(Metric):
    """The metrics of the outputs as one. They are made when there are values: ``"accuracy"`` depends on their shapes.

    Args:
        given: Metrics for the output, or for each one.
        outputs: The outputs.
    """

    def __init__(self, given: Any, outputs: Outputs) -> None:
        super().__init__(name="compile_metrics")
        self._given, self._outputs = given, outputs
        self._by_output: list[list[Metric]] = []
        for each in nest.flatten(given):
            if not (isinstance(each, str) and each in metrics._BY_SHAPE):
                metrics.get(each)

    def _make(self, y: Any, y_pred: Any) -> None:
        predicted = nest.flatten(y_pred)
        true = self._outputs.values(y, len(predicted))
        for at, (given, *values) in enumerate(
            zip(self._wanted(len(predicted)), true, predicted, strict=True)
        ):
            made = [metrics.as_object(each, *(tuple(value.shape) for value in values)) for each in given]
            if len(predicted) > 1:
                prefix = self._outputs.names[at] if self._outputs.names else f"output_{at}"
                for metric in made:
                    metric.name = f"{prefix}_{metric.name}"
            self._by_output.append(made)

    def _wanted(self, count: int) -> list[list[Any]]:
        given = self._given
        several = isinstance(given, list | tuple) and any(isinstance(each, list | tuple) for each in given)
        if count > 1 and (isinstance(given, dict) or several):
            given = self._outputs.ordered(given, "metrics", count)
        else:
            given = [given] * count
        return [nest.flatten(each) if each is not None else [] for each in given]

    def update_state(self, y: Any, y_pred: Any, sample_weight: Any = None) -> None:  # noqa: ARG002 - they have none
        """Take in a batch."""
        if self._given is None:
            return
        if not self._by_output:
            once(lambda: self._make(y, y_pred))
        predicted = nest.flatten(y_pred)
        if len(predicted[0]) == 0:
            return
        true = self._outputs.values(y, len(predicted))
        for made, *values in zip(self._by_output, true, predicted, strict=True):
            for metric in made:
                metric.update_state(*values)

    def _members(self) -> list[Metric]:
        return [metric for made in self._by_output for metric in made]

    def _all_numbers(self) -> list[PerReplicaNumber]:
        return [number for made in self._by_output for metric in made for number in metric._all_numbers()]

    def result(self) -> dict[str, Any]:
        """Return all metrics by name."""
        return {metric.name: metric.result() for each in self._by_output for metric in each}

    def reset_state(self) -> None:
        """Forget all batches."""
        for metric in (metric for each in self._by_output for metric in each):
            metric.reset_state()


__all__ = ["CompiledLoss", "CompiledMetrics", "Outputs"]
