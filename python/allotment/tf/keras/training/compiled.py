"""The losses and metrics of ``compile``, one or several for each output.

Longer than 300 lines: both follow the same rules for names and positions of outputs.
"""

from collections.abc import Sequence
from typing import Any

from allotment.tf import nest
from allotment.tf.keras.engine.replicas import PerReplicaNumber, run_once
from allotment.tf.keras.losses import lookup as loss_lookup
from allotment.tf.keras.losses.loss import Loss
from allotment.tf.keras.metrics import lookup as metric_lookup
from allotment.tf.keras.metrics.metric import Metric
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.math.arithmetic import add, multiply
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.variables.variable import Variable


class Outputs:
    """The names of a model's outputs, and the assignment of arguments to them by name or position.

    Args:
        names: The names, ``None`` if the outputs have none.
    """

    def __init__(self, names: Sequence[str] | None) -> None:
        self._names = list(names) if names else None

    def names(self, y_pred: Any) -> list[str | None]:
        """Return the names of the outputs: their keys, or those of a functional model."""
        if isinstance(y_pred, dict):
            return sorted(y_pred)
        count = len(nest.flatten(y_pred))
        if self._names is None or len(self._names) != count:
            return [None] * count
        return [*self._names]

    def values(self, given: Any, y_pred: Any, active: Sequence[bool]) -> list[Any]:
        """Return targets in the order of the outputs; fewer targets belong to the active outputs.

        Raises:
            ValueError: Their number differs from that of the outputs.
        """
        names = self.names(y_pred)
        if isinstance(given, dict) and set(given) == set(names):
            return [given[name] for name in names]
        flat = nest.flatten(given)
        if len(flat) == len(names):
            return flat
        if len(flat) == sum(active):
            rest = iter(flat)
            return [next(rest) if each else None for each in active]
        raise ValueError(
            "y_true and y_pred have different structures: pass one array for each output, in a list or by name. "
            f"Received {len(flat)} arrays for the outputs {names}"
        )

    def weights(self, given: Any, y_pred: Any) -> list[Any]:
        """Return sample weights in the order of the outputs; a single array is for all outputs.

        Raises:
            ValueError: Their number differs from that of the outputs.
        """
        count = len(nest.flatten(y_pred))
        if not nest.is_nested(given):
            return [given] * count
        return self.values(given, y_pred, [True] * count)


class CompiledLoss:
    """The losses of the outputs, each with its weight.

    Args:
        loss: A loss, or several.
        loss_weights: A number for each.
        outputs: The outputs.

    Raises:
        ValueError: An unknown loss, or weights that are no floats.
    """

    def __init__(self, loss: Any, loss_weights: Any, outputs: Outputs) -> None:
        if loss_weights and not isinstance(loss_weights, float | list | tuple | dict):
            raise ValueError(
                "`loss_weights` must be a float for one output, or a list, tuple or dict of them for several. "
                f"Received: loss_weights={loss_weights} of type {type(loss_weights)}"
            )
        self._loss, self._weights, self._outputs = loss, loss_weights, outputs
        #: The loss of each output and its weight, or ``None``.
        self._made: list[tuple[Loss, float] | None] = []
        # Names are checked in ``compile`` unless they depend on the outputs.
        for each in nest.flatten(loss):
            if not loss_lookup.depends_on_shapes(each):
                loss_lookup.get(each)

    def __call__(
        self, y: Any, y_pred: Any, sample_weight: Any, samples: int
    ) -> tuple[EagerTensor, dict[str, EagerTensor]]:
        """Compute the part of some samples in the loss of a batch with ``samples`` samples.

        Returns:
            The part of the total loss, and the parts by output if several outputs have a loss.

        Raises:
            ValueError: There are no targets.
        """
        predicted = nest.flatten(y_pred)
        given = self._made or self._given(y_pred)
        true = self._outputs.values(y, y_pred, [each is not None for each in given])
        if not self._made:
            self._made = self._make(given, true, predicted)
        weights = self._outputs.weights(sample_weight, y_pred)
        total: EagerTensor | None = None
        parts: dict[str, EagerTensor] = {}
        names = self._outputs.names(y_pred)
        for name, pair, own, made, weight in zip(names, self._made, true, predicted, weights, strict=True):
            if pair is None:
                continue
            loss, share = pair
            if own is None:
                raise ValueError(
                    f"there is no `y` to compute the loss {loss.name!r} with: pass targets, or no loss"
                )
            part = loss.part(own, made, weight, samples)
            parts[name or loss.name] = part
            if share != 1.0:
                part = multiply(part, share)
            total = part if total is None else add(total, cast(part, total._dtype))
        if total is None:
            raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`.")
        return total, parts if sum(each is not None for each in self._made) > 1 else {}

    def _given(self, y_pred: Any) -> list[Any]:
        """Return the losses and their weights in the order of the outputs."""
        names, given = self._outputs.names(y_pred), self._loss
        by_position = not isinstance(y_pred, dict)
        if isinstance(given, dict) and by_position and set(given) != set(names):
            raise ValueError(f"Expected keys {names} in loss dict, but found loss.keys()={list(given)}")
        shares = self._shares(names, is_dict=not by_position)
        pairs: list[Any] = [None if each is None else pair for each, pair in self._pairs(given, shares)]
        if isinstance(given, dict):
            unknown = [name for name in given if name not in names]
            if unknown:
                raise KeyError(f"the model has no output {unknown[0]!r} that `loss` names; it has {names}")
            by_name = dict(zip(sorted(given), pairs, strict=True))
            return [by_name.get(name) for name in names]
        if not isinstance(given, list | tuple):
            return pairs * len(names)
        if len(given) < len(names) and type(given) is type(y_pred):
            return pairs + [None] * (len(names) - len(given))
        if len(given) != len(names):
            raise ValueError(
                f"`loss` has {len(given)} entries, and the model has {len(names)} outputs. Received: loss={given}"
            )
        return pairs

    def _pairs(self, given: Any, shares: list[float]) -> list[tuple[Any, Any]]:
        return [(each, (each, share)) for each, share in zip(nest.flatten(given), shares, strict=True)]

    def _shares(self, names: Sequence[str | None], *, is_dict: bool) -> list[float]:
        """Return the weights in the order of the flattened losses."""
        count = len(nest.flatten(self._loss))
        if self._weights is None:
            return [1.0] * count
        if isinstance(self._weights, dict) and isinstance(self._loss, dict) and not is_dict:
            by_name = {name: self._weights[name] for name in names if name is not None}
            return [float(by_name[name]) for name in sorted(self._loss)]
        if isinstance(self._weights, int | float) and count > 1:
            raise TypeError(
                f"`loss_weights` is one number, and there are {count} losses: pass a weight for each."
            )
        shares = [float(each) for each in nest.flatten(self._weights)]
        if len(shares) != count:
            raise ValueError(
                f"`loss_weights` must match the number of losses, got {count} losses and {len(shares)} weights."
            )
        return shares

    def _make(self, given: list[Any], true: list[Any], predicted: list[Any]) -> list[Any]:
        return [
            None if pair is None else (loss_lookup.for_shapes(pair[0], own, made), pair[1])
            for pair, own, made in zip(given, true, predicted, strict=True)
        ]


class CompiledMetrics(Metric):
    """The metrics of all outputs as one. The first batch makes them: ``"accuracy"`` depends on shapes.

    Args:
        plain: Metrics for the output, or for each of several.
        weighted: Metrics with sample weights.
        outputs: The outputs.

    Raises:
        ValueError: An unknown metric, or metrics that are no list, tuple or dictionary.
    """

    def __init__(self, plain: Any, weighted: Any, outputs: Outputs) -> None:
        super().__init__(name="compile_metrics")
        self._outputs = outputs
        self._given = {"metrics": plain, "weighted_metrics": weighted}
        #: The metrics of each output by argument.
        self._made: dict[str, list[list[Metric]]] = {}
        #: The metrics by their names in the results.
        self._named: dict[str, Metric] = {}
        for argument, given in self._given.items():
            if given and not isinstance(given, list | tuple | dict):
                raise ValueError(
                    f"Expected `{argument}` argument to be a list, tuple, or dict. Received instead: "
                    f"{argument}={given} of type {type(given)}"
                )
            for each in nest.flatten(given or []):
                if each is not None and not metric_lookup.depends_on_shapes(each):
                    metric_lookup.get(each)

    def _make(self, y: Any, y_pred: Any) -> None:
        predicted, true = nest.flatten(y_pred), self._true(y, y_pred)
        names = self._outputs.names(y_pred) if len(predicted) > 1 else [None]
        made: dict[str, list[list[Metric]]] = {}
        for argument, given in self._given.items():
            wanted = self._by_output(argument, given, names)
            made[argument] = [
                [metric_lookup.for_shapes(each, own, output) for each in entry]
                for entry, own, output in zip(wanted, true, predicted, strict=False)
            ]
        self._named = _named(made, names)
        self._made = made

    def _by_output(self, argument: str, given: Any, names: Sequence[str | None]) -> list[list[Any]]:
        if not given:
            return [[] for _ in names]
        if len(names) == 1:
            return [nest.flatten(given)]
        if isinstance(given, dict) and set(given) <= set(names):
            entries = [given.get(name) for name in names]
        elif isinstance(given, list | tuple) and len(given) == len(names):
            entries = list(given)
        else:
            raise ValueError(
                f"Invalid `{argument}`: a model with several outputs takes a list with an entry for each, or a dict "
                f"by their names {list(names)}. Received: {argument}={given}"
            )
        return [
            [] if each is None else list(each) if isinstance(each, list | tuple) else [each]
            for each in entries
        ]

    def _true(self, y: Any, y_pred: Any) -> list[Any]:
        names = self._outputs.names(y_pred)
        if isinstance(y, dict) and set(names) <= set(y):
            return [y[name] for name in names]
        return nest.flatten(y)

    def update_state(self, y: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Update the metrics with a batch."""
        if not self._made:
            run_once(lambda: self._make(y, y_pred))
        predicted = nest.flatten(y_pred)
        if len(predicted[0]) == 0:
            return
        true = self._true(y, y_pred)
        weights = self._outputs.weights(sample_weight, y_pred)
        for argument, made in self._made.items():
            for entry, own, output, weight in zip(made, true, predicted, weights, strict=False):
                for metric in entry:
                    if argument == "metrics":
                        metric.update_state(own, output)
                    else:
                        metric.update_state(own, output, sample_weight=weight)

    @property
    def variables(self) -> list[Variable]:
        """The variables of all metrics."""
        return [variable for metric in self._members() for variable in metric.variables]

    def _members(self) -> list[Metric]:
        return [metric for made in self._made.values() for entry in made for metric in entry]

    def _all_numbers(self) -> list[PerReplicaNumber]:
        return [number for metric in self._members() for number in metric._all_numbers()]

    def result(self) -> dict[str, Any]:
        """Return all metrics by name.

        Raises:
            ValueError: There was no batch yet.
        """
        if not self._made:
            raise ValueError(
                "The metrics of `compile` have no result: no batch has updated them. A `train_step` or `test_step` of "
                "your own must call `self.compute_metrics(x, y, y_pred, sample_weight)`."
            )
        return {name: metric.result() for name, metric in self._named.items()}

    def reset_state(self) -> None:
        """Reset the metrics."""
        for metric in self._members():
            metric.reset_state()


def _named(made: dict[str, list[list[Metric]]], names: Sequence[str | None]) -> dict[str, Metric]:
    """Name metrics after their outputs; repeated names get numbers."""
    found: dict[str, Metric] = {}
    counts: dict[str, int] = {}
    for argument, by_output in made.items():
        for output, entry in zip(names, by_output, strict=False):
            prefix = f"{output}_" if output else ""
            for metric in entry:
                name = prefix + metric.name
                if name in counts and argument == "weighted_metrics":
                    name = f"{prefix}weighted_{metric.name}"
                count = counts.get(name, 0)
                counts[name] = count + 1
                found[f"{name}_{count}" if count else name] = metric
    return found


__all__ = ["CompiledLoss", "CompiledMetrics", "Outputs"]
