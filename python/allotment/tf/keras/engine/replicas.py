"""What Keras asks of the strategy it runs under; with none, there is one replica."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from allotment.devices.placement import device, thread
from allotment.tf.distribute.variables.distributed import MirroredVariable
from allotment.tf.keras.engine.precision import widened
from allotment.tf.ops.array.array import cast, stop_gradient
from allotment.tf.ops.math.arithmetic import multiply
from allotment.tf.tensors.tensor import EagerTensor


def replica() -> int | None:
    """The number of the replica that this thread runs, ``None`` if it runs none."""
    scope = thread.state.strategy
    return None if scope is None or scope.replica is None else scope.replica._index


def number_of_replicas() -> int:
    """How many replicas the strategy in force has."""
    scope = thread.state.strategy
    return 1 if scope is None else scope.strategy.num_replicas_in_sync


def sum_over_replicas(values: Sequence[EagerTensor]) -> list[EagerTensor]:
    """The sums of tensors over all replicas, which all have to call this; the tensors themselves if there is one."""
    if replica() is None or number_of_replicas() == 1:
        return list(values)
    return list(thread.state.strategy.replica.all_reduce("SUM", list(values)))


def mean_over_replicas(values: Sequence[EagerTensor], weight: int) -> list[EagerTensor]:
    """The means of tensors over all replicas, each with its weight: the number of samples it has seen, say.

    Gradients do not go through it.
    """
    from allotment.tf.ops.array.constants import constant

    kept = [stop_gradient(value) for value in values]
    if replica() is None or number_of_replicas() == 1:
        return kept
    parts = [multiply(widened(value), float(weight)) for value in kept]
    *sums, total = sum_over_replicas([*parts, constant(float(weight))])
    share = 1 / float(total)
    return [cast(multiply(value, share), own._dtype) for value, own in zip(sums, kept, strict=True)]


def once(function: Callable[[], None]) -> None:
    """Call a function once for all replicas, which all have to call this, with all of them in sight."""
    if replica() is None:
        function()
    else:
        thread.state.strategy.replica.merge_call(lambda strategy: function())  # noqa: ARG005


def assign_alike(variable: Any, value: Any) -> None:
    """Give a variable a value that is the same on all replicas, which all have to call this."""
    if hasattr(variable, "distribute_strategy"):
        variable.assign(value)
    else:
        once(lambda: variable.assign(value))


def together(layer: Any, build: Callable[[Any], None]) -> None:
    """Build a layer once for all replicas, which all have to call this.

    Where each has made one of its own, as with ``Dense(3)(x)`` in a replica's code, the first replica's is built, and
    the others become its twins: they have the same attributes, so the same variables.
    """
    if replica() is None:
        build(layer)
        return

    def perform(layers: list[Any]) -> list[None]:
        first = layers[0]
        build(first)
        for each in layers[1:]:
            # But the symbolic tensors that it was called with are its own.
            vars(each).update({name: value for name, value in vars(first).items() if name != "nodes"})
        return [None] * len(layers)

    what = f"building of {layer.name!r}"
    thread.state.strategy.replica._channel.call_together(what, ("building", type(layer)), perform, layer)


def beside(variable: Any) -> AbstractContextManager[Any]:
    """Put what is made in a ``with`` block on the device of a variable, on those of all its copies if it has some."""
    strategy = getattr(variable, "distribute_strategy", None)
    return device(variable.device) if strategy is None else strategy.scope()


def level(variables: Iterable[Any]) -> None:
    """Give all copies of variables the value of the first: after a step in which not all replicas changed theirs."""
    for variable in variables:
        if isinstance(variable, MirroredVariable):
            first, *others = variable.values
            value = first.numpy()
            for copy in others:
                with device(copy.device):
                    copy.assign(value)


class PerReplicaNumber:
    """A number of each replica, which only that one changes, kept in the host's memory and in double precision."""

    def __init__(self) -> None:
        self._numbers: dict[int, float] = {}
        self._everywhere: float | None = None

    def add(self, amount: float) -> float:
        """Add to this replica's number. Returns it."""
        index = replica() or 0
        number = self._numbers[index] = self._numbers.get(index, 0) + amount
        return number

    def own(self) -> float:
        """The replica's number; the first's where none runs."""
        return self._numbers.get(replica() or 0, 0)

    def total(self) -> float:
        """The replica's number; where none runs the sum of all, in this process or in what is ``everywhere``."""
        if replica() is not None:
            return self.own()
        return sum(self._numbers.values()) if self._everywhere is None else self._everywhere

    def reset(self) -> None:
        """Set all numbers to zero."""
        self._numbers.clear()


@contextmanager
def everywhere(strategy: Any, numbers: Sequence[PerReplicaNumber]) -> Iterator[None]:
    """Let numbers be the sums over all processes of a strategy in a ``with`` block, which all of them have to enter."""
    totals = strategy.extended._totals(np.array([number.total() for number in numbers], np.float64))
    for number, total in zip(numbers, totals, strict=True):
        number._everywhere = float(total)
    try:
        yield
    finally:
        for number in numbers:
            number._everywhere = None


__all__ = [
    "PerReplicaNumber",
    "assign_alike",
    "beside",
    "everywhere",
    "level",
    "mean_over_replicas",
    "number_of_replicas",
    "once",
    "replica",
    "sum_over_replicas",
    "together",
]
