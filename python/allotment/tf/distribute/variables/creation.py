"""Creation of a variable with a copy on the device of each replica."""

import inspect
from typing import Any, Final

from allotment.devices.device_scope import device
from allotment.tf.distribute.extended import StrategyExtended
from allotment.tf.distribute.scopes import ScopedReplica
from allotment.tf.distribute.strategy import Strategy
from allotment.tf.distribute.variables.distributed import DistributedVariable, MirroredVariable
from allotment.tf.distribute.variables.sync_on_read import SyncOnReadVariable
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.variables.aggregation import VariableAggregation, VariableSynchronization
from allotment.tf.variables.variable import Variable

_SIGNATURE: Final = inspect.signature(Variable.__init__)


def new_variable(
    strategy: Strategy, replica: ScopedReplica | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> DistributedVariable:
    """Make a variable with a copy on each device.

    Args:
        strategy: The strategy that the variable belongs to.
        replica: The replica that runs, if one does: all replicas call this and get the same variable.
        args: Arguments of ``tf.Variable``.
        kwargs: The same by name.

    Raises:
        ValueError: An invalid ``synchronization`` or ``aggregation``.
    """
    given = dict(_SIGNATURE.bind(None, *args, **kwargs).arguments)
    del given["self"]

    def made(arguments: dict[str, Any]) -> DistributedVariable:
        return _new_variable(strategy, arguments)

    if replica is None:
        return made(given)
    name = given.get("name") or "Variable"

    def perform(all_given: list[dict[str, Any]]) -> list[DistributedVariable]:
        variable = made(all_given[0])
        return [variable] * len(all_given)

    what = f"making of variable {name!r}"
    variable: DistributedVariable = replica._channel.call_together(what, what, perform, given)
    return variable


def _new_variable(strategy: Strategy, given: dict[str, Any]) -> DistributedVariable:
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
    if on_read and given.get("trainable") is None:
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


def _copies(strategy: Strategy, given: dict[str, Any]) -> list[Variable]:
    """Make a variable on each device: the first with the initial value, the others with a copy of its value."""
    extended: StrategyExtended = strategy.extended
    value = given.get("initial_value")
    copies: list[Variable] = []
    for index, name in enumerate(extended._devices):
        with device(name):
            if index == 0:
                value = value() if callable(value) else value
                if value is not None:
                    dtype = None if given.get("dtype") is None else as_dtype(given["dtype"])
                    value = extended._first_value(to_tensor(value, dtype))
                copies.append(_plain(given | {"initial_value": value}))
            else:
                base = given.get("name") or "Variable"
                copies.append(
                    _plain(given | {"initial_value": copies[0].value(), "name": f"{base}/replica_{index}"})
                )
    return copies


def _plain(given: dict[str, Any]) -> Variable:
    """Make a variable with one value, whatever strategy is in force."""
    made: Variable = object.__new__(Variable)
    made.__init__(**given)  # type: ignore[misc]
    return made


__all__ = ["new_variable"]
