"""Variables with a copy on the device of each replica.

Which copy is meant depends on who asks: a replica means its own, a program in the cross-replica scope all of them
when it assigns, and when it reads the one on the device of the scope, or the first.
"""

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from allotment.devices.names import parse
from allotment.devices.placement import device, thread
from allotment.tf.distribute.reduce_op import of_aggregation
from allotment.tf.distribute.scopes import Scope, check_same, current_scope
from allotment.tf.distribute.values import DistributedValues, Mirrored, regroup, select
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.slicing import Index
from allotment.tf.ops.table import Operation
from allotment.tf.ops.variables.resources import Storage
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.variables.aggregation import VariableAggregation, VariableSynchronization
from allotment.tf.variables.variable import Variable

if TYPE_CHECKING:
    from allotment.tf.distribute.strategy import Strategy


class DistributedVariable(DistributedValues, Variable):
    """A variable with a copy on each device. It is made by ``tf.Variable`` in the scope of a strategy."""

    _strategy: "Strategy"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # ``tf.Variable(...)`` calls this with what ``new_variable`` has used already.
        pass

    @classmethod
    def _of(
        cls, strategy: "Strategy", copies: Sequence[Variable], synchronization: Any
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
    def distribute_strategy(self) -> "Strategy":
        """The strategy in whose scope it was made."""
        return self._strategy

    def _own(self) -> Variable:
        """The copy of the replica that runs; else the one on the device of the scope, or the first."""
        copies: tuple[Variable, ...] = self._values
        scope = current_scope()
        if scope is not None and scope.replica is not None:
            return copies[min(scope.replica._index, len(copies) - 1)]
        wish = thread.state.wish.name
        if wish is None:
            return copies[0]
        return next((each for each in copies if wish.matches(parse(each.device))), copies[0])

    @property
    def _storage(self) -> Storage:  # type: ignore[override]
        """That of the copy that is meant."""
        return self._own()._storage

    @property
    def _replica(self) -> Any:
        """The replica that runs, ``None`` in the cross-replica scope.

        Raises:
            RuntimeError: It is one of another strategy.
        """
        check_same(self._strategy)
        scope = current_scope()
        return None if scope is None else scope.replica

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Replace the value: of all copies, or as a replica says it; see ``aggregation``.

        As a replica, without an aggregation, of its own copy. With one all replicas wait for each other, their values
        become one, and that is assigned to all copies.

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
        """Call a method of copies, with options that are the same for all of them."""
        raise NotImplementedError

    def _change_all(self, method: str, value: Any, **options: Any) -> list[Any]:
        """Call a method of all copies with the part of a value that is theirs."""
        made = []
        for index, copy in enumerate(self._values):
            with device(copy.device):
                made.append(getattr(copy, method)(select(index, value), **options))
        return made

    def _scatter(self, row: Operation, indices: Any, updates: Any, name: str | None) -> NoReturn:
        raise NotImplementedError(
            f"{row.name} is not for a {type(self).__name__}, whose copies are changed together: assign what "
            "tf.tensor_scatter_nd_update(...), tf.tensor_scatter_nd_add(...) or one like them makes of its value, or "
            "change each copy by strategy.extended.update."
        )

    def set_shape(self, shape: Any) -> None:
        """Say more of the shape of all copies: lengths that may change become those given.

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
    """A variable whose copies are equal: what one replica assigns, all do, or they say how to make one value."""

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
        return replica._line.meet(what, (called, id(self)), perform, value)

    def _aggregated(self, value: Any) -> Any:
        """What all copies get of the values of the replicas."""
        extended = self._strategy.extended
        if self._aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return extended.broadcast_to(extended._first_value(select(0, value)), self)
        return extended.reduce_to(of_aggregation(self._aggregation), value, self)


def _read(assigned: Any) -> Any:
    """What assigning to all copies returns: the values that they have now."""
    if isinstance(assigned, DistributedValues):
        return Mirrored([_read(each) for each in assigned.values])
    return to_tensor(assigned) if isinstance(assigned, Variable) else assigned


def tensors(value: DistributedValues) -> list[EagerTensor]:
    """The values as tensors, each read where it is."""
    return [to_tensor(each) for each in value.values]


_SIGNATURE: Final = inspect.signature(Variable.__init__)


def new_variable(scope: Scope, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DistributedVariable:
    """Make a variable with a copy on each device; replicas make one together.

    Raises:
        ValueError: How copies belong together is not supported, or not known.
    """
    given = dict(_SIGNATURE.bind(None, *args, **kwargs).arguments)
    del given["self"]

    def made(arguments: dict[str, Any]) -> DistributedVariable:
        return _new_variable(scope.strategy, arguments)

    if scope.replica is None:
        return made(given)
    name = given.get("name") or "Variable"

    def perform(all_given: list[dict[str, Any]]) -> list[DistributedVariable]:
        variable = made(all_given[0])
        return [variable] * len(all_given)

    what = f"making of variable {name!r}"
    variable: DistributedVariable = scope.replica._line.meet(what, what, perform, given)
    return variable


def _new_variable(strategy: "Strategy", given: dict[str, Any]) -> DistributedVariable:
    from allotment.tf.distribute.sync_on_read import SyncOnReadVariable

    name = given.get("name")
    synchronization = given.get("synchronization", VariableSynchronization.AUTO)
    aggregation = given.get("aggregation", VariableAggregation.NONE)
    if not isinstance(synchronization, VariableSynchronization):
        raise ValueError(f"Invalid variable synchronization mode: {synchronization} for variable: {name}")
    if not isinstance(aggregation, VariableAggregation):
        raise ValueError(f"Invalid variable aggregation mode: {aggregation} for variable: {name}")
    if synchronization is VariableSynchronization.NONE:
        raise ValueError(
            "`NONE` variable synchronization mode is not supported with tf.distribute strategy. Please change the "
            f"`synchronization` for variable: {name}"
        )
    on_read = synchronization is VariableSynchronization.ON_READ
    if on_read:
        given.setdefault("trainable", False)
        if given["trainable"] is None:
            given["trainable"] = False
    copies = _copies(strategy, given)
    dtype = copies[0].dtype
    if aggregation is VariableAggregation.MEAN and not (dtype.is_floating or dtype.is_complex):
        raise ValueError(
            "creating distributed tf.Variable with aggregation=MEAN and a non-floating dtype is not supported, please "
            "use a different aggregation or dtype"
        )
    kind: type[DistributedVariable] = SyncOnReadVariable if on_read else MirroredVariable
    return kind._of(
        strategy, copies, VariableSynchronization.ON_READ if on_read else VariableSynchronization.ON_WRITE
    )


def _copies(strategy: "Strategy", given: dict[str, Any]) -> list[Variable]:
    """A variable on each device, the first one with the value that is given, the others with a copy of it."""
    extended = strategy.extended
    copies: list[Variable] = []
    for index, name in enumerate(extended._devices):
        with device(name):
            if index == 0:
                value = (
                    given["initial_value"]()
                    if callable(given.get("initial_value"))
                    else given.get("initial_value")
                )
                if value is not None:
                    value = extended._first_value(to_tensor(value, _dtype(given)))
                copies.append(_plain(given | {"initial_value": value}))
            else:
                base = given.get("name") or "Variable"
                copies.append(
                    _plain(given | {"initial_value": copies[0].value(), "name": f"{base}/replica_{index}"})
                )
    return copies


def _dtype(given: dict[str, Any]) -> Any:
    from allotment.tf.tensors.dtype import as_dtype

    return None if given.get("dtype") is None else as_dtype(given["dtype"])


def _plain(given: dict[str, Any]) -> Variable:
    """A variable with one value, whatever strategy is in force."""
    made: Variable = object.__new__(Variable)
    made.__init__(**given)  # type: ignore[misc]
    return made


__all__ = ["DistributedVariable", "MirroredVariable", "new_variable", "tensors"]
