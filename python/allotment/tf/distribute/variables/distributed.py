"""Variables with a copy on the device of each replica.

A replica reads and assigns its own copy. In the cross-replica scope an assignment changes all copies, and a read takes
the copy on the device of the scope, or the first.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

from allotment.devices.device_scope import device
from allotment.devices.names import parse
from allotment.tf.dispatch import thread
from allotment.tf.distribute.reductions.reduce_op import aggregation_op
from allotment.tf.distribute.scopes import ScopedReplica, check_same, current_replica
from allotment.tf.distribute.strategy import Strategy
from allotment.tf.distribute.values import DistributedValues, Mirrored, regroup, select
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.slicing import Index
from allotment.tf.ops.table import Operation
from allotment.tf.ops.variables.resources import Storage
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.variables.aggregation import VariableAggregation
from allotment.tf.variables.variable import Variable


class DistributedVariable(DistributedValues, Variable):
    """A variable with a copy on each device. It is made by ``tf.Variable`` in the scope of a strategy."""

    _strategy: Strategy

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # ``tf.Variable(...)`` calls this with what ``creation.new_variable`` has used already.
        pass

    @classmethod
    def _of(
        cls, strategy: Strategy, copies: Sequence[Variable], synchronization: Any
    ) -> "DistributedVariable":
        made = object.__new__(cls)
        first = copies[0]
        made._values = tuple(copies)
        made._strategy = strategy
        made._name, made._shape, made._trainable = first._name, first._shape, first._trainable
        made._constraint, made._aggregation = first._constraint, first._aggregation
        made._synchronization = synchronization
        return made

    @property
    def distribute_strategy(self) -> Strategy:
        """The strategy in whose scope it was made."""
        return self._strategy

    def _own(self) -> Variable:
        """Return the copy of the replica that runs; if none runs, that on the device of the scope, or the first."""
        copies: tuple[Variable, ...] = self._values
        replica = current_replica()
        if replica is not None:
            return copies[min(replica._index, len(copies) - 1)]
        request = thread.state.request.name
        if request is None:
            return copies[0]
        return next((each for each in copies if request.matches(parse(each.device))), copies[0])

    @property
    def _storage(self) -> Storage:  # type: ignore[override]
        """The storage of the copy that ``_own`` returns."""
        return self._own()._storage

    @property
    def _replica(self) -> ScopedReplica | None:
        """The replica that runs, ``None`` in the cross-replica scope.

        Raises:
            RuntimeError: Another strategy is in force.
        """
        check_same(self._strategy)
        return current_replica()

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Replace the value.

        In the cross-replica scope this assigns all copies. A replica assigns its own copy if there is no aggregation;
        with one, all replicas wait for each other, the aggregation makes one value of theirs, and all copies get it.

        Raises:
            ValueError: Another shape or type than the variable's; a sum of a Python number.
            RuntimeError: Another strategy is in force.
        """
        return self._change("assign", value, name=name, read_value=read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add to the value; see ``assign``."""
        return self._change("assign_add", delta, name=name, read_value=read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract from the value; see ``assign``."""
        return self._change("assign_sub", delta, name=name, read_value=read_value)

    def _assign_part(self, value: Any, index: Index, name: str | None) -> Any:
        return self._change("_assign_part", value, index=index, name=name)

    def _change(self, method: str, value: Any, **options: Any) -> Any:
        """Call a method of ``Variable`` with the copies that an assignment changes; options are the same for all."""
        raise NotImplementedError

    def _change_all(self, method: str, value: Any, **options: Any) -> list[Any]:
        """Call a method of each copy with its part of a value."""
        made = []
        for index, copy in enumerate(self._values):
            with device(copy.device):
                made.append(getattr(copy, method)(select(index, value), **options))
        return made

    def _scatter(
        self, row: Operation, indices: Any, updates: Any, name: str | None, read_value: bool = True
    ) -> NoReturn:
        raise NotImplementedError(
            f"{row.name} is not for a {type(self).__name__}, whose copies are changed together: assign what "
            "tf.tensor_scatter_nd_update(...), tf.tensor_scatter_nd_add(...) or one like them makes of its value, or "
            "change each copy by strategy.extended.update."
        )

    def set_shape(self, shape: Any) -> None:
        """Restrict the shape of all copies: lengths that may change become those given.

        Raises:
            ValueError: The shape is another.
        """
        super().set_shape(shape)
        for copy in self._values:
            copy.set_shape(shape)

    def __copy__(self) -> "DistributedVariable":
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> "DistributedVariable":
        other = self.__copy__()
        other._values = tuple(each.__deepcopy__(memo) for each in self._values)
        memo[id(self)] = other
        return other

    def __reduce__(self) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__} does not pickle: its copies are on the devices of this process. Pickle its value."
        )

    # As TensorFlow's, which gives the name a tensor. A variable with one value refuses.
    __iadd__ = Variable.__add__
    __isub__ = Variable.__sub__
    __imul__ = Variable.__mul__
    __ipow__ = Variable.__pow__
    __itruediv__ = Variable.__truediv__

    # Not those of a variable with one value.
    __str__ = DistributedValues.__str__
    __repr__ = DistributedValues.__repr__


class MirroredVariable(DistributedVariable):
    """A variable whose copies are equal: replicas assign together, and ``aggregation`` makes one value of theirs."""

    def _change(self, method: str, value: Any, **options: Any) -> Any:
        replica = self._replica
        if replica is None:
            made = regroup(self._change_all(method, value, **options), Mirrored)
            return _read(made) if isinstance(made, DistributedValues) else made
        if self._aggregation is VariableAggregation.NONE or self._strategy.num_replicas_in_sync == 1:
            return getattr(self._own(), method)(value, **options)

        def perform(given: list[Any]) -> list[Any]:
            one = self._aggregated(regroup(given))
            return [_read(each) for each in self._change_all(method, one, **options)]

        # A list is one value, not a structure of values.
        value = to_tensor(value, self.dtype) if isinstance(value, list | tuple) else value
        part = options.get("index")
        called = method if part is None else f"assign to {part}"
        what = f"{called} of variable {self.name!r} with aggregation {self._aggregation.name}"
        return replica._channel.call_together(what, (called, id(self)), perform, value)

    def _aggregated(self, value: Any) -> Any:
        """Aggregate the values of the replicas into the value that all copies get."""
        extended = self._strategy.extended
        if self._aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return extended.broadcast_to(extended._first_value(select(0, value)), self)
        return extended.reduce_to(aggregation_op(self._aggregation), value, self)


def _read(assigned: Any) -> Any:
    """Read the variables that an assignment returned."""
    if isinstance(assigned, DistributedValues):
        return Mirrored([_read(each) for each in assigned.values])
    return to_tensor(assigned) if isinstance(assigned, Variable) else assigned


def tensors(value: DistributedValues) -> list[EagerTensor]:
    """Return the values as tensors, each on its own device."""
    return [to_tensor(each) for each in value.values]


__all__ = ["DistributedVariable", "MirroredVariable", "tensors"]
