"""What a strategy does with devices. Strategies differ in this class alone.

To write a strategy, derive from ``StrategyExtended``, or from ``MirroredExtended`` for one that has the same
replicas in several processes. That one only says how processes agree:

    ``_first_replica``, ``_num_replicas``    which of all replicas are in this process
    ``_exchange``                            adds arrays up with those of the other processes, in place
    ``_gather_between``                      the arrays of all processes, in their order
    ``_first_value``                         what a variable starts with: the first process's value
    ``_by_replica``, ``_totals``, ``_before``  values and lengths, of which other processes have more
    ``_input_context``                       which part of the input is read here
    ``_common_source``                       random numbers that are the same in all processes

Everything else, such as threads, meetings, reductions between devices and variables, stays as it is.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from allotment.devices.context import context
from allotment.devices.placement import device, thread
from allotment.devices.variables import LONGEST_DEADLINE
from allotment.tf import nest
from allotment.tf.distribute.input_context import InputContext
from allotment.tf.distribute.members import Array
from allotment.tf.distribute.reduce_op import ReduceOp, reduce_op_argument
from allotment.tf.distribute.scopes import Scope, check_cross_replica, current_scope, entered, not_in_graphs
from allotment.tf.distribute.values import DistributedValues, Mirrored, regroup, select
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.random.draws import Source
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.variables.variable import Variable

if TYPE_CHECKING:
    from allotment.tf.distribute.strategy import Strategy


class StrategyExtended:
    """What a strategy does with devices. As ``tf.distribute.StrategyExtended``.

    Args:
        strategy: Whose it is.
    """

    #: The number of this process's first replica among those of all processes.
    _first_replica = 0

    def __init__(self, strategy: "Strategy") -> None:
        self._strategy = strategy
        #: What the program has set, a tuple of one.
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
        """The longest time in seconds that a step goes on without a word of any replica; ``None`` is for ever.

        A replica is heard of when it waits for the others, as in an all-reduce or an assignment that aggregates, and
        when it ends. At first what ``ALLOTMENT_REPLICA_DEADLINE`` says.
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
        """Put the thread into the strategy's cross-replica scope, unless it is there.

        Raises:
            RuntimeError: It is in another strategy's, or runs a replica.
            NotImplementedError: A graph is the default.
        """
        self._check_eager()
        check_cross_replica(self._strategy)
        if current_scope() is not None:
            yield
            return
        with entered(Scope(self._strategy, None)):
            yield

    def _check_eager(self) -> None:
        """Check that no graph is the default.

        Raises:
            NotImplementedError: One is.
        """
        if thread.state.graph is not None:
            raise NotImplementedError(not_in_graphs(self._strategy))

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function once for each replica. See ``Strategy.run``."""
        raise NotImplementedError

    def _call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same, without a word about what it costs: for whoever has no other way."""
        return self.call_for_each_replica(fn, args, kwargs)

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """Make one value of those of all replicas, on the devices that ``destinations`` are.

        Raises:
            ValueError: ``value`` is the same for all replicas, so that a sum means nothing.
        """
        return self.batch_reduce_to(reduce_op, [(value, destinations)], options)[0]

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Sequence[tuple[Any, Any]], options: Any = None
    ) -> list[Any]:
        """``reduce_to`` for several values."""
        op = reduce_op_argument(reduce_op)
        with self._scope():
            return [
                self._reduce_to(op, value, destinations) for value, destinations in value_destination_pairs
            ]

    def _reduce_to(self, reduce_op: ReduceOp, value: Any, destinations: Any) -> Any:
        raise NotImplementedError

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """Copy a tensor to the devices that ``destinations`` are."""
        raise NotImplementedError

    def _all_reduce(
        self, reduce_op: ReduceOp, values: Sequence[Sequence[EagerTensor]]
    ) -> Sequence[Sequence[EagerTensor]]:
        """Reduce several values, of each its tensors by replica; the results are ordered the same way."""
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
            fn: Gets the copy, and each argument with the part of that replica.
            args: Arguments.
            kwargs: The same by name.
            group: Return one value, and not a tuple of those of all copies.

        Returns:
            What the function returned, part by part. With ``group``, ``None`` stands for what is no tensor and not
            the same for all copies.
        """
        named = dict(kwargs or {})
        scope = current_scope()
        if scope is not None and scope.replica is not None:

            def merged(strategy: "Strategy", *args: Any, **kwargs: Any) -> Any:
                return strategy.extended.update(var, fn, args, kwargs, group)

            return scope.replica.merge_call(merged, tuple(args), named)
        with self._scope():
            copies = var.values if isinstance(var, DistributedValues) else (var,)
            made = []
            for index, copy in enumerate(copies):
                with device(copy.device):
                    made.append(fn(copy, *select(index, tuple(args)), **select(index, named)))
        if group:
            return nest.map_structure(_only_tensors, regroup(made, Mirrored))
        return nest.map_structure(self._strategy.experimental_local_results, regroup(made, Mirrored))

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was made in this strategy's scope."""
        return getattr(v, "distribute_strategy", None) is self._strategy

    def _new_variable(self, scope: Scope, *args: Any, **kwargs: Any) -> Variable:
        """What ``Variable.__new__`` returns in the scope, for the arguments it got."""
        return object.__new__(Variable)

    def _first_value(self, value: Any) -> Any:
        """What a variable starts with, if this process would start with ``value``."""
        return value

    def _by_replica(self, value: Any) -> Any:
        """A value that ``run`` returned, as distributed values if other processes have one of their own."""
        return value

    def _before(self, lengths: Sequence[int]) -> Sequence[int]:
        """The sums of lengths over the processes before this one."""
        return [0] * len(lengths)

    def _totals(self, numbers: Array) -> Array:
        """The sums of numbers over all processes."""
        return numbers

    def _common_source(self) -> Source | None:
        """What all processes draw the same numbers from; ``None`` if there is one process. All have to call it."""
        return None

    def _input_context(self) -> InputContext:
        """Which part of the input is read in this process."""
        return InputContext(1, 0, self._num_replicas)


def _only_tensors(value: Any) -> Any:
    """Distributed values whose copies are variables as tensors, others that are no tensors not at all."""
    if not isinstance(value, DistributedValues):
        return value
    if not all(isinstance(each, EagerTensor | Variable) for each in value.values):
        return None
    return Mirrored([to_tensor(each) for each in value.values])


__all__ = ["StrategyExtended"]
