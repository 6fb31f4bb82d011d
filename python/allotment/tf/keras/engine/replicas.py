"""Calls of Keras to the strategy in force: sums over replicas, and work that all replicas do together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from allotment.devices.device_scope import device
from allotment.tf.distribute.scopes import current_replica, current_scope
from allotment.tf.distribute.variables.distributed import MirroredVariable
from allotment.tf.keras.engine.precision import widened
from allotment.tf.ops.array.array import cast, stop_gradient
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.math.arithmetic import multiply
from allotment.tf.tensors.tensor import EagerTensor


def replica_index() -> int | None:
    """Return the number of the replica that this thread runs, ``None`` if it runs none."""
    own = current_replica()
    return None if own is None else own._index


def number_of_replicas() -> int:
    """Return the number of replicas of the strategy in force, 1 without one."""
    scope = current_scope()
    return 1 if scope is None else scope.strategy.num_replicas_in_sync


def sum_over_replicas(values: Sequence[EagerTensor]) -> list[EagerTensor]:
    """Sum tensors over all replicas, which all have to call this; without a strategy, return the tensors."""
    own = current_replica()
    if own is None or number_of_replicas() == 1:
        return list(values)
    return list(own.all_reduce("SUM", list(values)))


def mean_over_replicas(values: Sequence[EagerTensor], weight: int) -> list[EagerTensor]:
    """Average tensors over all replicas by weights, such as their numbers of samples.

    The means have no gradients.
    """
    kept = [stop_gradient(value) for value in values]
    if replica_index() is None or number_of_replicas() == 1:
        return kept
    parts = [multiply(widened(value), float(weight)) for value in kept]
    *sums, total = sum_over_replicas([*parts, constant(float(weight))])
    share = 1 / float(total)
    return [cast(multiply(value, share), own._dtype) for value, own in zip(sums, kept, strict=True)]


def run_once(function: Callable[[], object]) -> None:
    """Call a function once for all replicas, which all have to call this, in the cross-replica scope."""
    own = current_replica()
    if own is None:
        function()
    else:
        own.merge_call(lambda strategy: function())  # noqa: ARG005


def assign_on_replicas(variable: Any, value: Any) -> None:
    """Assign a value that is equal on all replicas, which all have to call this."""
    if hasattr(variable, "distribute_strategy"):
        variable.assign(value)
    else:
        run_once(lambda: variable.assign(value))


def build_together(layer: Any, build: Callable[[Any], None]) -> None:
    """Build a layer once for all replicas, which all have to call this.

    If each replica has made a layer of its own, as with ``Dense(3)(x)`` in a replica's code, the layer of the first
    replica is built, and the others get its attributes, so that all have the same variables.
    """
    own = current_replica()
    if own is None:
        build(layer)
        return

    def perform(layers: list[Any]) -> list[None]:
        first = layers[0]
        build(first)
        for each in layers[1:]:
            # The recorded calls are not shared.
            vars(each).update({name: value for name, value in vars(first).items() if name != "nodes"})
        return [None] * len(layers)

    what = f"building of {layer.name!r}"
    own._channel.call_together(what, ("building", type(layer)), perform, layer)


def colocate_with(variable: Any) -> AbstractContextManager[Any]:
    """Make variables of a ``with`` block on the device of a variable, or on the devices of its copies."""
    strategy = getattr(variable, "distribute_strategy", None)
    return device(variable.device) if strategy is None else strategy.scope()


def synchronize_copies(variables: Iterable[Any]) -> None:
    """Set all copies of variables to the value of the first, after a step that failed on some replicas."""
    for variable in variables:
        if isinstance(variable, MirroredVariable):
            first, *others = variable.values
            value = first.numpy()
            for copy in others:
                with device(copy.device):
                    copy.assign(value)


class PerReplicaNumber:
    """A number for each replica, in host memory and double precision."""

    def __init__(self) -> None:
        self._numbers: dict[int, float] = {}
        self._over_processes: float | None = None

    def add(self, amount: float) -> float:
        """Add to this replica's number and return it."""
        index = replica_index() or 0
        number = self._numbers[index] = self._numbers.get(index, 0) + amount
        return number

    def own(self) -> float:
        """Return the number of the replica that runs, or of the first one if none runs."""
        return self._numbers.get(replica_index() or 0, 0)

    def total(self) -> float:
        """Return the replica's number; if none runs the sum over replicas, inside ``sum_over_processes`` over all."""
        if replica_index() is not None:
            return self.own()
        return sum(self._numbers.values()) if self._over_processes is None else self._over_processes

    def assign(self, amount: float) -> None:
        """Set this replica's number; if none runs, let the sum over replicas be the amount."""
        index = replica_index()
        if index is None:
            self._numbers.clear()
        self._numbers[index or 0] = amount

    def reset(self) -> None:
        """Set all numbers to zero."""
        self._numbers.clear()


@contextmanager
def sum_over_processes(strategy: Any, numbers: Sequence[PerReplicaNumber]) -> Iterator[None]:
    """Replace numbers by their sums over all processes of a strategy in a ``with`` block, which all have to enter."""
    totals = strategy.extended._totals(np.array([number.total() for number in numbers], np.float64))
    for number, total in zip(numbers, totals, strict=True):
        number._over_processes = float(total)
    try:
        yield
    finally:
        for number in numbers:
            number._over_processes = None


__all__ = [
    "PerReplicaNumber",
    "assign_on_replicas",
    "build_together",
    "colocate_with",
    "mean_over_replicas",
    "number_of_replicas",
    "replica_index",
    "run_once",
    "sum_over_processes",
    "sum_over_replicas",
    "synchronize_copies",
]
