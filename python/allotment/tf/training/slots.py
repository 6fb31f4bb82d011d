"""Slots: the variables in which optimizers keep their state for each variable that they update."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from allotment.devices.device_scope import device
from allotment.tf.dispatch import thread
from allotment.tf.graph.default import get_default_graph
from allotment.tf.graph.variables.graph_variable import GraphVariable
from allotment.tf.ops.array.creation import fill
from allotment.tf.ops.name_scopes import name_scope
from allotment.tf.variables import restoring
from allotment.tf.variables.variable import Variable


class Slots:
    """Creates and holds the slots of an optimizer: variables of the shape and on the device of another variable."""

    #: Name of each slot, and its initial value: a number, or the name of an attribute.
    _slots: ClassVar[Mapping[str, float | str]] = {}

    def __init__(self, name: str) -> None:
        self._name = name
        #: Slot variables by slot name and the key of the updated variable.
        self._slot_variables: dict[str, dict[Any, Any]] = {}
        #: State that does not depend on a variable, such as the powers of Adam's betas, by name and graph.
        self._non_slot_variables: dict[tuple[str, Any], Any] = {}

    def get_slot_names(self) -> list[str]:
        """Return the names of the existing slots."""
        return sorted(self._slot_variables)

    def get_slot(self, var: Any, name: str) -> Any:
        """Return the slot variable ``name`` of a variable; ``None`` if it does not exist."""
        return self._slot_variables.get(name, {}).get(var._source)

    def variables(self) -> list[Any]:
        """Return all variables of the optimizer's state, in a graph those of the graph, ordered by name."""
        graph = thread.state.graph
        created = [each for slots in self._slot_variables.values() for each in slots.values()]
        created += self._non_slot_variables.values()
        # A slot of a variable with copies is listed once for each copy.
        different = {id(each): each for each in created if getattr(each, "_graph", None) is graph}
        return sorted(different.values(), key=lambda each: each.name)

    def _checkpoint_parts(self) -> Iterator[tuple[str, Any]]:
        for name, slots in self._slot_variables.items():
            # A slot of a variable with copies is listed once for each copy.
            yield name, list({id(slot): slot for slot in slots.values()}.values())
        for (name, _), variable in self._non_slot_variables.items():
            yield f"others/{name}", variable

    def _lacks_slots(self, variable: Any) -> bool:
        return any(variable._source not in self._slot_variables.get(name, {}) for name in self._slots)

    def _create_slots(self, variables: Sequence[Any]) -> None:
        """Create the slots that the variables lack."""
        for variable in variables:
            for number, (name, value) in enumerate(self._slots.items()):
                slots = self._slot_variables.setdefault(name, {})
                if variable._source not in slots:
                    first = getattr(self, value) if isinstance(value, str) else value
                    slot = self._create_slot(variable, first, number)
                    for copy in variable.values if has_copies(variable) else (variable,):
                        slots[copy._source] = slot
        if restoring.pending:
            restoring.restore_pending()

    def _create_slot(self, variable: Any, value: float, number: int) -> Any:
        """Create a variable with the shape, type and device of another, filled with ``value``.

        Args:
            variable: The other variable.
            value: What it is filled with.
            number: The number of slots of ``variable`` before this one: part of its name, which a graph adds by itself.
        """
        name = f"{variable.name.partition(':')[0]}/{self._name}"
        numbered = f"{name}_{number}" if number else name

        def first() -> Any:
            return fill(variable.shape, variable.dtype.as_numpy_dtype(value))

        if has_copies(variable):
            with variable.distribute_strategy.scope(), name_scope(""):
                return Variable(first, trainable=False, name=numbered)
        if not isinstance(variable, GraphVariable):
            with device(variable.device), outside_of_strategies(), name_scope(""):
                return Variable(first, trainable=False, name=numbered)
        with variable.graph.name_scope(None), variable.graph.colocate_with(variable.op, ignore_existing=True):
            return GraphVariable(first, trainable=False, name=name, use_resource=variable._is_resource)

    def _non_slot_variable(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a state variable of the optimizer, created with the initial value ``make()`` at first."""
        graph = thread.state.graph
        if (name, graph) not in self._non_slot_variables:
            if graph is None:
                made: Any = Variable(make, trainable=False, name=name)
            else:
                with get_default_graph().control_dependencies(None):
                    made = GraphVariable(make, trainable=False, name=name)
            self._non_slot_variables[name, graph] = made
            if restoring.pending:
                restoring.restore_pending()
        return self._non_slot_variables[name, graph]


def has_copies(variable: Any) -> bool:
    """Whether a variable was created in the scope of a strategy, with a copy for each replica."""
    return hasattr(variable, "distribute_strategy")


@contextmanager
def outside_of_strategies() -> Iterator[None]:
    """Context manager in which variables are created without copies, even in the scope of a strategy."""
    state = thread.state
    outer, state.strategy = state.strategy, None
    try:
        yield
    finally:
        state.strategy = outer


__all__ = ["Slots", "has_copies", "outside_of_strategies"]
