"""The base class of strategies, which run one program for several replicas."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from allotment.devices.device_scope import device
from allotment.tf import nest
from allotment.tf.distribute.extended import StrategyExtended
from allotment.tf.distribute.input.dataset import distribute_batches, divide_batches
from allotment.tf.distribute.reductions.reduce_op import ReduceOp, reduce_op_argument
from allotment.tf.distribute.scopes import check_cross_replica, current_replica
from allotment.tf.distribute.values import DistributedValues, local_results, regroup
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.tensors.indexed_slices import IndexedSlices


class ValueContext:
    """The number of the replica that a value is made for. As ``tf.distribute.experimental.ValueContext``.

    Args:
        replica_id_in_sync_group: The number of the replica among all of them.
        num_replicas_in_sync: The number of replicas.
    """

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self._replica_id_in_sync_group = replica_id_in_sync_group
        self._num_replicas_in_sync = num_replicas_in_sync

    @property
    def replica_id_in_sync_group(self) -> int:
        """The number of the replica among all of them."""
        return self._replica_id_in_sync_group

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas in all processes."""
        return self._num_replicas_in_sync

    def __str__(self) -> str:
        return (
            f"tf.distribute.ValueContext(replica id {self._replica_id_in_sync_group},  total replicas in sync: "
            f"{self._num_replicas_in_sync})"
        )


class _StrategyScope(AbstractContextManager["Strategy"]):
    """A ``with`` block in the scope of a strategy."""

    def __init__(self, strategy: "Strategy") -> None:
        self._strategy = strategy
        self._entered: list[AbstractContextManager[None]] = []

    def __enter__(self) -> "Strategy":
        scope = self._strategy.extended._scope()
        scope.__enter__()
        self._entered.append(scope)
        return self._strategy

    def __exit__(self, *error: Any) -> None:
        self._entered.pop().__exit__(*error)


class Strategy:
    """Runs one program for several replicas. As ``tf.distribute.Strategy``; programs make its subclasses.

    Args:
        extended: Runs replicas, reduces values and makes variables.
    """

    def __init__(self, extended: StrategyExtended) -> None:
        self._extended = extended

    @property
    def extended(self) -> StrategyExtended:
        """The object that runs replicas, reduces values and makes variables."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas in all processes."""
        return self._extended._num_replicas

    def scope(self) -> AbstractContextManager["Strategy"]:
        """Make the variables of a ``with`` block those of the strategy.

        Raises:
            RuntimeError: On entry: another strategy is in force.
            NotImplementedError: On entry: a graph is the default; strategies are for eager programs.
        """
        return _StrategyScope(self)

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: Any = None,
    ) -> Any:
        """Call a function once for each replica, on the replica's device, all at the same time.

        Args:
            fn: The function.
            args: Arguments; each replica gets its part of distributed values.
            kwargs: The same by name.
            options: Has no effect.

        Returns:
            The results as distributed values, or plain values that are the same on every replica. With one replica,
            the result.

        Raises:
            ValueError: ``args`` is no list or tuple.
            RuntimeError: Replicas do not make the same calls for which they wait for each other.
            DeadlineExceededError: A replica sends no news for too long; see ``extended.replica_deadline``.
            BaseException: The error of a replica; a note names the replica and the state of the others.
        """
        if not isinstance(args, list | tuple):
            raise ValueError(f"positional args must be a list or tuple, got {type(args)}")
        with self._extended._scope():
            return self._extended.call_for_each_replica(fn, args, kwargs)

    def reduce(self, reduce_op: Any, value: Any, axis: int | None) -> Any:
        """Reduce the values of all replicas to one, on the first device.

        Args:
            reduce_op: ``"SUM"`` or ``"MEAN"``, in any case, or a ``ReduceOp``.
            value: A result of ``run``.
            axis: An axis of each replica's value along which to reduce, too; ``None`` for none.

        Raises:
            ValueError: Another ``reduce_op``; or a sum of a value that is the same for several replicas.
        """
        op = reduce_op_argument(reduce_op)
        with self._extended._scope():
            return nest.map_structure(lambda each: self._reduce(op, each, axis), value)

    def _reduce(self, op: ReduceOp, value: Any, axis: int | None) -> Any:
        extended = self._extended
        first = extended._devices[:1]
        if axis is None:
            return extended._reduce_to(op, value, first)
        value = extended._by_replica(value)
        if not isinstance(value, DistributedValues):
            tensor = to_tensor(value)
            total = reduce_sum(tensor, axis=axis)
            if op is ReduceOp.MEAN:
                return total / tensor._array.shape[axis]
            return extended._reduce_to(op, total, first)
        sums, length = [], 0
        for each in value.values:
            tensor = to_tensor(each)
            with device(tensor.device):
                sums.append(reduce_sum(tensor, axis=axis))
            length += tensor._array.shape[axis]
        total = extended._reduce_to(ReduceOp.SUM, regroup(sums), first)
        length = int(extended._totals(np.array([length]))[0])
        with device(total.device):
            return total / length if op is ReduceOp.MEAN else total

    def gather(self, value: Any, axis: int) -> Any:
        """Join the values of all replicas along an axis, on the first device.

        Raises:
            RuntimeError: Called by a replica.
            ValueError: The values of several replicas have no axes.
            InvalidArgumentError: Other lengths than those along the axis differ.
        """
        if current_replica() is not None:
            raise RuntimeError(
                "tf.distribute.Strategy.gather method requires cross-replica context, use "
                "get_replica_context().all_gather() instead"
            )
        extended = self._extended
        if any(
            isinstance(part, IndexedSlices)
            for each in nest.flatten(value)
            for part in getattr(each, "values", (each,))
        ):
            raise NotImplementedError("gather does not support IndexedSlices")
        with extended._scope():
            return nest.map_structure(
                lambda each: extended._gather(_tensors(each), axis, extended._devices[:1])[0], value
            )

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return the values of this process's replicas, a tuple of one for a plain value."""
        return local_results(len(self._extended._devices), value)

    def experimental_distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """Make a value for each replica.

        Args:
            value_fn: Makes the value of a replica from its ``ValueContext``.

        Raises:
            RuntimeError: Called by a replica, or another strategy is in force.
        """
        check_cross_replica(self)
        first = self._extended._first_replica
        values = [
            value_fn(ValueContext(first + index, self.num_replicas_in_sync))
            for index in range(len(self._extended._devices))
        ]
        return regroup(values, always=True)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """Divide each batch of a data set among the replicas.

        A batch is cut along the first axis into consecutive parts, each with the same number of rows, rounded up; the
        last ones may be smaller or empty. Elements are distributed values, each part on its replica's device.

        With several processes all of them have to call it, with data sets that give the same batches; those shuffled
        without a seed do.

        Args:
            dataset: A ``tf.data.Dataset``, or another iterable of batches.
            options: Has no effect.
        """
        check_cross_replica(self)
        extended = self._extended
        return divide_batches(
            dataset,
            extended._devices,
            extended._first_replica,
            self.num_replicas_in_sync,
            extended._common_source,
        )

    def distribute_datasets_from_function(
        self,
        dataset_fn: Callable[[Any], Any],
        options: Any = None,
    ) -> Any:
        """Give each replica batches of its own: the elements of a data set in turn.

        Args:
            dataset_fn: Makes a data set from an ``InputContext``.
            options: Has no effect.
        """
        check_cross_replica(self)
        return distribute_batches(dataset_fn, self._extended._input_context(), self._extended._devices)


def _tensors(value: Any) -> list[Any]:
    return [to_tensor(each) for each in (value.values if isinstance(value, DistributedValues) else (value,))]


__all__ = ["Strategy", "ValueContext"]
