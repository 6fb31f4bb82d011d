"""The runner of a model's steps: on one device, or on the replicas of a strategy."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from allotment.devices.messages.call_site import find_caller
from allotment.tf import nest
from allotment.tf.distribute.scopes import current_scope
from allotment.tf.distribute.values import PerReplica
from allotment.tf.keras.engine.replicas import replica_index, sum_over_processes
from allotment.tf.keras.engine.warnings import on_behalf_of
from allotment.tf.keras.metrics.metric import Metric
from allotment.tf.keras.training.data import Arrays, Batch, Stream
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.random.draws import Source
from allotment.tf.ops.random.seeds import InCommon


class Runner:
    """Runs the steps of a model on one device, or on the replicas of its strategy.

    Args:
        strategy: The strategy in whose scope the model was made, if any.
    """

    def __init__(self, strategy: Any) -> None:
        self._strategy = strategy
        #: The number of parts of a batch.
        self.parts: int = 1 if strategy is None else strategy.num_replicas_in_sync

        #: The random numbers that all processes share that divide the same batches.
        self._common: Source | None = None

    @property
    def has_strategy(self) -> bool:
        """Whether the steps run on the replicas of a strategy."""
        return self._strategy is not None

    @classmethod
    def of_scope(cls) -> "Runner":
        """Make a runner for the strategy in force."""
        scope = current_scope()
        return cls(None if scope is None else scope.strategy)

    def scope(self) -> AbstractContextManager[Any]:
        """Return the scope in which to make variables.

        Raises:
            ValueError: The scope of another strategy is in force.
        """
        scope = current_scope()
        if scope is not None and scope.strategy is not self._strategy:
            raise ValueError(
                "the model was made outside of this strategy's scope, so that its variables have no copies for the "
                "replicas. Make and compile it inside of `with strategy.scope():`."
            )
        return nullcontext() if self._strategy is None else self._strategy.scope()

    def check(self, variables: Sequence[Any]) -> None:
        """Check that each replica has a copy of each variable.

        Raises:
            ValueError: A variable was made in another scope.
        """
        for variable in variables:
            if self.parts > 1 and not self._strategy.extended.variable_created_in_scope(variable):
                raise ValueError(
                    f"variable {variable.name!r} was made outside of the scope of the strategy that its model was made "
                    "under, so that replicas have no copies of it. Make all layers inside of `with strategy.scope():`."
                )

    def batches(self, data: Arrays | Stream) -> Iterator[Batch]:
        """Iterate over data, in the same order in all processes of the strategy."""
        if self._common is None and self._strategy is not None:
            self._common = self._strategy.extended._common_source()
        return data.batches() if self._common is None else InCommon(self._common, data.batches)

    def run(self, step: Callable[[Batch], Any], batch: Batch) -> list[Any]:
        """Call a step with the part of each replica, on its device; return the results of this process's replicas."""
        if self._strategy is None:
            return [step(batch.map(to_tensor))]
        made = self._strategy.experimental_distribute_values_from_function(
            lambda context: _Part(batch.part(context.replica_id_in_sync_group, context.num_replicas_in_sync))
        )
        # Replicas run on threads that have no frame of the program.
        caller = find_caller()
        results: list[Any] = [None] * len(self._strategy.extended.worker_devices)

        def replica(part: _Part) -> None:
            with on_behalf_of(caller):
                result = step(part.batch.map(to_tensor))
            index = replica_index()
            assert index is not None
            results[index] = result

        with self.scope():
            try:
                self._strategy.extended._call(replica, (made,), {})
            except Exception as error:
                error.add_note(f"in a step of {caller}")
                raise
        return results

    def sum_over_processes(self, metrics: Sequence[Metric]) -> AbstractContextManager[None]:
        """Let metrics include all processes in a ``with`` block, which all of them have to enter."""
        numbers = [number for metric in metrics for number in metric._all_numbers()]
        return nullcontext() if self._strategy is None else sum_over_processes(self._strategy, numbers)

    def joined(self, results: list[Any]) -> Any:
        """Concatenate the outputs of the replicas of all processes, as arrays."""
        if self.parts > len(results):
            value = nest.map_structure(lambda *each: PerReplica(each), *results)
            return nest.map_structure(np.asarray, self._strategy.gather(value, 0))
        arrays = [nest.map_structure(np.asarray, each) for each in results]
        return (
            arrays[0] if len(arrays) == 1 else nest.map_structure(lambda *each: np.concatenate(each), *arrays)
        )

    def averaged(self, results: list[dict[str, Any]], *, everywhere: bool) -> dict[str, float]:
        """Average values by name over replicas, of this process or of all."""
        names, count = list(results[0]), len(results)
        sums = np.array([sum(float(np.mean(np.asarray(each[name]))) for each in results) for name in names])
        if everywhere and self._strategy is not None:
            sums, count = self._strategy.extended._totals(sums), self.parts
        return dict(zip(names, (sums / count).tolist(), strict=True))


class _Part:
    """A batch that strategies do not treat as a structure."""

    __slots__ = ("batch",)

    def __init__(self, batch: Batch) -> None:
        self.batch = batch


def flat_logs(result: Any) -> Any:
    """Flatten nested logs, such as those of compiled metrics."""
    if not isinstance(result, dict):
        return result
    flat: dict[str, Any] = {}
    for name, value in result.items():
        flat |= flat_logs(value) if isinstance(value, dict) else {name: value}
    return flat


__all__ = ["Runner", "flat_logs"]
