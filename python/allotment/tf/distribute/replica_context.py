"""The context of a replica while it runs: its number, its device, and calls that all replicas make together."""

from collections.abc import Callable, Sequence
from typing import Any

from allotment.tf.distribute.collectives import Caller, all_gather, all_reduce
from allotment.tf.distribute.reductions.reduce_op import reduce_op_argument
from allotment.tf.distribute.scopes import Channel
from allotment.tf.distribute.strategy import Strategy
from allotment.tf.distribute.values import regroup, select
from allotment.tf.ops.array.constants import constant
from allotment.tf.tensors.dtype import int32
from allotment.tf.tensors.tensor import EagerTensor


class ReplicaContext:
    """The replica that a thread runs. As ``tf.distribute.ReplicaContext``."""

    def __init__(self, strategy: Strategy, index: int, channel: Channel) -> None:
        self._strategy = strategy
        #: The number among the replicas of this process.
        self._index = index
        self._channel = channel

    @property
    def strategy(self) -> Strategy:
        """The strategy that runs it."""
        return self._strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas in all processes."""
        return self._strategy.num_replicas_in_sync

    @property
    def replica_id_in_sync_group(self) -> EagerTensor | int:
        """The number of this replica among all of them, as a tensor."""
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
            merge_fn: Its arguments are the strategy, and each argument with the values of all replicas.
            args: Arguments of this replica.
            kwargs: The same by name.

        Returns:
            This replica's part of the function's result.
        """
        strategy = self._strategy

        def perform(arguments: list[Any]) -> list[Any]:
            given, named = regroup(arguments)
            made = merge_fn(strategy, *given, **named)
            return [select(index, made) for index in range(len(arguments))]

        name = getattr(merge_fn, "__qualname__", type(merge_fn).__name__)
        # Each replica makes a function of its own out of the same code.
        key = ("merge_call", getattr(merge_fn, "__code__", name))
        return self._channel.call_together(
            f"merge_call({name})", key, perform, (tuple(args), dict(kwargs or {}))
        )

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """Add up, or average, the values of all replicas. Every replica gets the result.

        Args:
            reduce_op: ``"SUM"``, ``"MEAN"`` or a ``ReduceOp``.
            value: A tensor, or a nested structure of tensors. The same shapes and types on every replica. Where a
                value is ``IndexedSlices``, it is on every replica; the rows of all are joined.
            options: Has no effect.

        Raises:
            ValueError: Another ``reduce_op``.
            InvalidArgumentError: Shapes or types differ between replicas.
            RuntimeError: Structures differ.
        """
        return all_reduce(self._caller, reduce_op_argument(reduce_op), value)

    def all_gather(self, value: Any, axis: Any, options: Any = None) -> Any:
        """Join the values of all replicas along an axis. Every replica gets the result.

        Args:
            value: A tensor, or a nested structure of tensors, equal in all axes but one.
            axis: The axis in which they may differ.
            options: Has no effect.

        Raises:
            ValueError: The values of several replicas have no axes.
            InvalidArgumentError: Other lengths than those along the axis differ.
        """
        return all_gather(self._caller, value, axis)

    @property
    def _caller(self) -> Caller:
        return Caller(self._strategy.extended, self._channel)


__all__ = ["ReplicaContext"]
