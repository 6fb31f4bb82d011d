"""The base class of ``strategy.extended``: how a strategy runs replicas, reduces values and makes variables.

A new strategy derives from ``StrategyExtended``, or from ``MirroredExtended`` if it has the same replicas in several
processes. Then it only implements what processes do together:

    ``_first_replica``, ``_num_replicas``    the replicas of this process among all
    ``_exchange``                            adds arrays up with those of the other processes, in place
    ``_gather_between``                      returns the arrays of all processes, in their order
    ``_first_value``                         returns the first process's initial value of a variable
    ``_by_replica``, ``_totals``, ``_before``  add the values and lengths of other processes
    ``_input_context``                       describes the part of the input that this process reads
    ``_common_source``                       makes random numbers that are the same in all processes
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from allotment.devices.context import context
from allotment.devices.device_scope import device
from allotment.devices.environment.variables import LONGEST_DEADLINE
from allotment.tf import nest
from allotment.tf.dispatch import thread
from allotment.tf.distribute.input.context import InputContext
from allotment.tf.distribute.reductions.members import Array
from allotment.tf.distribute.reductions.reduce_op import ReduceOp, reduce_op_argument
from allotment.tf.distribute.scopes import (
    Scope,
    ScopedStrategy,
    check_cross_replica,
    current_replica,
    current_scope,
    enter_scope,
    graph_refusal,
)
from allotment.tf.distribute.values import (
    DistributedValues,
    Mirrored,
    local_results,
    regroup,
    select,
)
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.random.draws import Source
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.variables.variable import Variable


class StrategyExtended:
    """Runs replicas, reduces values and makes variables for a strategy. As ``tf.distribute.StrategyExtended``.

    Args:
        strategy: The strategy.
    """

    #: The number of this process's first replica among those of all processes.
    _first_replica = 0

    def __init__(self, strategy: ScopedStrategy) -> None:
        self._strategy = strategy
        #: The deadline that the program has set, in a tuple of one.
        self._own_deadline: tuple[float | None] | None = None

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Full names of the devices that replicas run on, by replica."""
        return self._devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Full names of the devices that variables are on."""
        return self._devices

    @property
    def _devices(self) -> tuple[str, ...]:
        """Full names of the devices of this process's replicas."""
        raise NotImplementedError

    @property
    def replica_deadline(self) -> float | None:
        """The longest time in seconds that a step goes on without news of any replica; ``None`` waits for ever.

        A replica sends news when it waits for the others, as in an all-reduce or an assignment that aggregates, and
        when it ends. The default is ``ALLOTMENT_REPLICA_DEADLINE``.
        """
        if self._own_deadline is None:
            return context().settings.replica_deadline
        return self._own_deadline[0]

    @replica_deadline.setter
    def replica_deadline(self, seconds: float | None) -> None:
        if seconds is not None and not 0 < seconds <= LONGEST_DEADLINE:
            raise ValueError(
                f"replica_deadline must be more than 0 and at most {LONGEST_DEADLINE} seconds, or None for no "
                f"deadline, not {seconds!r}"
            )
        self._own_deadline = (seconds,)

    @property
    def _num_replicas(self) -> int:
        """The number of replicas in all processes."""
        return len(self._devices)

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """Put the thread into the strategy's cross-replica scope for a ``with`` block.

        Raises:
            RuntimeError: The thread is in the scope of another strategy, or runs a replica.
            NotImplementedError: A graph is the default.
        """
        self._check_eager()
        check_cross_replica(self._strategy)
        if current_scope() is not None:
            yield
            return
        with enter_scope(Scope(self._strategy, None)):
            yield

    def _check_eager(self) -> None:
        """Check that no graph is the default.

        Raises:
            NotImplementedError: One is.
        """
        if thread.state.graph is not None:
            raise NotImplementedError(graph_refusal(self._strategy))

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function once for each replica. See ``Strategy.run``."""
        raise NotImplementedError

    def _call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function once for each replica, without the warning about the cost of eager calls."""
        return self.call_for_each_replica(fn, args, kwargs)

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """Reduce the values of all replicas to one, on the devices of ``destinations``.

        Raises:
            ValueError: A sum of a value that is the same for all replicas.
        """
        return self.batch_reduce_to(reduce_op, [(value, destinations)], options)[0]

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Sequence[tuple[Any, Any]], options: Any = None
    ) -> list[Any]:
        """Reduce several values; see ``reduce_to``."""
        op = reduce_op_argument(reduce_op)
        with self._scope():
            return [
                self._reduce_to(op, value, destinations) for value, destinations in value_destination_pairs
            ]

    def _reduce_to(self, reduce_op: ReduceOp, value: Any, destinations: Any) -> Any:
        raise NotImplementedError

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """Copy a tensor to the devices of ``destinations``."""
        raise NotImplementedError

    def _all_reduce(
        self, reduce_op: ReduceOp, values: Sequence[Sequence[EagerTensor]]
    ) -> Sequence[Sequence[EagerTensor]]:
        """Reduce several values, each given as its tensors by replica; the results have the same order."""
        raise NotImplementedError

    def _gather(
        self, tensors: Sequence[EagerTensor], axis: int, destinations: Sequence[str]
    ) -> list[EagerTensor]:
        """Join the tensors of all replicas along an axis, on each destination."""
        raise NotImplementedError

    def update(
        self,
        var: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """Call a function with each copy of a variable, on its device.

        Args:
            var: A variable of this strategy, or a plain one.
            fn: Its arguments are the copy, and the part of each argument that is for that replica.
            args: Arguments.
            kwargs: The same by name.
            group: Return distributed values, not a tuple of the results of all copies.

        Returns:
            The results of the function as distributed values. With ``group``, ``None`` replaces results that are no
            tensors and differ between copies.
        """
        named = dict(kwargs or {})
        replica = current_replica()
        if replica is not None:

            def merged(_: object, *args: Any, **kwargs: Any) -> Any:
                return self.update(var, fn, args, kwargs, group)

            return replica.merge_call(merged, tuple(args), named)
        with self._scope():
            copies = var.values if isinstance(var, DistributedValues) else (var,)
            made = []
            for index, copy in enumerate(copies):
                with device(copy.device):
                    made.append(fn(copy, *select(index, tuple(args)), **select(index, named)))
        if group:
            return nest.map_structure(_only_tensors, regroup(made, Mirrored))
        return nest.map_structure(
            lambda each: local_results(len(self._devices), each), regroup(made, Mirrored)
        )

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was made in this strategy's scope."""
        return getattr(v, "distribute_strategy", None) is self._strategy

    def _new_variable(self, scope: Scope, *args: Any, **kwargs: Any) -> Variable:
        """Make the object that ``Variable.__new__`` returns in the scope, for its arguments."""
        return object.__new__(Variable)

    def _first_value(self, value: Any) -> Any:
        """Return the initial value of a variable: the first process's; ``value`` is that of this process."""
        return value

    def _by_replica(self, value: Any) -> Any:
        """Return a result of ``run``, as distributed values if other processes have results of their own."""
        return value

    def _before(self, lengths: Sequence[int]) -> Sequence[int]:
        """Return the sums of lengths over the processes before this one."""
        return [0] * len(lengths)

    def _totals(self, numbers: Array) -> Array:
        """Return the sums of numbers over all processes."""
        return numbers

    def _common_source(self) -> Source | None:
        """Make random numbers that all processes share, ``None`` if there is one; all processes have to call this."""
        return None

    def _input_context(self) -> InputContext:
        """Describe the part of the input that this process reads."""
        return InputContext(1, 0, self._num_replicas)


def _only_tensors(value: Any) -> Any:
    """Read variables in distributed values; distributed values of other objects become ``None``."""
    if not isinstance(value, DistributedValues):
        return value
    if not all(isinstance(each, EagerTensor | Variable) for each in value.values):
        return None
    return Mirrored([to_tensor(each) for each in value.values])


__all__ = ["StrategyExtended"]
