"""What a replica knows of itself and of the others, and how it waits for them."""

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from allotment.tf.distribute.reduce_op import reduce_op_argument
from allotment.tf.distribute.values import regroup, select

if TYPE_CHECKING:
    from allotment.tf.distribute.step import Perform
    from allotment.tf.distribute.strategy import Strategy
    from allotment.tf.tensors.tensor import EagerTensor


class Line(Protocol):
    """Where a replica waits for the others."""

    def meet(self, what: str, key: Hashable, perform: "Perform", arguments: Any) -> Any:
        """Give arguments, and get this replica's answer when all have given theirs."""


class ReplicaContext:
    """One replica while it runs. As ``tf.distribute.ReplicaContext``."""

    def __init__(self, strategy: "Strategy", index: int, line: Line) -> None:
        self._strategy = strategy
        #: The number among the replicas of this process.
        self._index = index
        self._line = line

    @property
    def strategy(self) -> "Strategy":
        """The strategy that runs it."""
        return self._strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are."""
        return self._strategy.num_replicas_in_sync

    @property
    def replica_id_in_sync_group(self) -> "EagerTensor | int":
        """The number of this replica among all of them, as a tensor."""
        from allotment.tf.ops.array.creation import constant
        from allotment.tf.tensors.dtype import int32

        return constant(self._strategy.extended._first_replica + self._index, int32)

    @property
    def devices(self) -> tuple[str, ...]:
        """Full name of the replica's device, in a tuple of one."""
        return (self._strategy.extended._devices[self._index],)

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Wait for all replicas, and call a function once for all of them.

        Args:
            merge_fn: Gets the strategy, and each argument with the values of all replicas.
            args: Arguments of this replica.
            kwargs: The same by name.

        Returns:
            The function's result, of which each replica gets its part.
        """
        strategy = self._strategy

        def perform(arguments: list[Any]) -> list[Any]:
            given, named = regroup(arguments)
            made = merge_fn(strategy, *given, **named)
            return [select(index, made) for index in range(len(arguments))]

        name = getattr(merge_fn, "__qualname__", type(merge_fn).__name__)
        # Each replica makes a function of its own out of the same code.
        key = ("merge_call", getattr(merge_fn, "__code__", name))
        return self._line.meet(f"merge_call({name})", key, perform, (tuple(args), dict(kwargs or {})))

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """Add up, or average, the values of all replicas. Every replica gets the result.

        Args:
            reduce_op: ``"SUM"``, ``"MEAN"`` or a ``ReduceOp``.
            value: A tensor, or a nested structure of tensors. The same shapes and types on every replica.
            options: Has no effect.

        Raises:
            ValueError: Another ``reduce_op``.
            InvalidArgumentError: Shapes or types differ between replicas.
            RuntimeError: Structures differ.
        """
        from allotment.tf.distribute.collectives import all_reduce

        return all_reduce(self, reduce_op_argument(reduce_op), value)

    def all_gather(self, value: Any, axis: Any, options: Any = None) -> Any:
        """Join the values of all replicas along an axis. Every replica gets the result.

        Args:
            value: A tensor, or a nested structure of tensors, equal in all axes but one.
            axis: That one.
            options: Has no effect.

        Raises:
            ValueError: The values of several replicas have no axes.
            InvalidArgumentError: Other lengths than those along the axis differ.
        """
        from allotment.tf.distribute.collectives import all_gather

        return all_gather(self, value, axis)
