"""Variables that optimizers keep beside those they change."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from allotment.devices.placement import device, thread
from allotment.tf.graph.default import get_default_graph
from allotment.tf.graph.variables.graph_variable import GraphVariable
from allotment.tf.ops.array.creation import fill
from allotment.tf.variables import restoring
from allotment.tf.variables.variable import Variable


class Slots:
    """The slots of an optimizer: for each variable some others of its shape, on its device."""

    #: What the slots are called, and what they are filled with at first: a number, or the name of an attribute.
    _slots: ClassVar[Mapping[str, float | str]] = {}

    def __init__(self, name: str) -> None:
        self._name = name
        self._made: dict[str, dict[Any, Any]] = {}
        #: Others, of no variable, by name and graph.
        self._others: dict[tuple[str, Any], Any] = {}

    def get_slot_names(self) -> list[str]:
        """Return the names of the slots that there are."""
        return sorted(self._made)

    def get_slot(self, var: Any, name: str) -> Any:
        """Return the slot of a variable, ``None`` if there is none."""
        return self._made.get(name, {}).get(var._source)

    def variables(self) -> list[Any]:
        """Return all variables that it keeps: in a graph those of the graph."""
        graph = thread.state.graph
        made = [each for slots in self._made.values() for each in slots.values()] + list(
            self._others.values()
        )
        # One with copies is there once for each of them.
        different = {id(each): each for each in made if getattr(each, "_graph", None) is graph}
        return sorted(different.values(), key=lambda each: each.name)

    def _checkpoint_parts(self) -> Iterator[tuple[str, Any]]:
        for name, slots in self._made.items():
            # One with copies is there once for each of them.
            yield name, list({id(slot): slot for slot in slots.values()}.values())
        for (name, _), variable in self._others.items():
            yield f"others/{name}", variable

    def _lacks_slots(self, variable: Any) -> bool:
        return any(variable._source not in self._made.get(name, {}) for name in self._slots)

    def _make_slots(self, variables: Sequence[Any]) -> None:
        """Make the slots that variables do not have yet."""
        for name, value in self._slots.items():
            slots = self._made.setdefault(name, {})
            for variable in variables:
                if variable._source not in slots:
                    first = getattr(self, value) if isinstance(value, str) else value
                    slot = self._beside(variable, first)
                    for copy in variable.values if has_copies(variable) else (variable,):
                        slots[copy._source] = slot
        if restoring.waiting:
            restoring.variables_made()

    def _beside(self, variable: Any, value: float) -> Any:
        """A variable with the shape and type of another, on its device, called after it and the optimizer."""
        name = f"{variable.name.partition(':')[0]}/{self._name}"

        def first() -> Any:
            return fill(variable.shape, variable.dtype.as_numpy_dtype(value))

        if has_copies(variable):
            with variable.distribute_strategy.scope():
                return Variable(first, trainable=False, name=name)
        if not isinstance(variable, GraphVariable):
            with device(variable.device), outside_of_strategies():
                return Variable(first, trainable=False, name=name)
        with variable.graph.name_scope(None), variable.graph.colocate_with(variable.op, ignore_existing=True):
            return GraphVariable(first, trainable=False, name=name, use_resource=variable._is_resource)

    def _other(self, name: str, make: Callable[[], Any]) -> Any:
        """A variable of no other one."""
        graph = thread.state.graph
        if (name, graph) not in self._others:
            if graph is None:
                made: Any = Variable(make, trainable=False, name=name)
            else:
                with get_default_graph().name_scope(None), get_default_graph().control_dependencies(None):
                    made = GraphVariable(make, trainable=False, name=name)
            self._others[name, graph] = made
            if restoring.waiting:
                restoring.variables_made()
        return self._others[name, graph]


def has_copies(variable: Any) -> bool:
    """Whether a variable was made in the scope of a strategy, with a copy for each replica."""
    return hasattr(variable, "distribute_strategy")


@contextmanager
def outside_of_strategies() -> Iterator[None]:
    """Make plain variables in a ``with`` block, whatever strategy is in force."""
    state = thread.state
    outer, state.strategy = state.strategy, None
    try:
        yield
    finally:
        state.strategy = outer


__all__ = ["Slots", "has_copies", "outside_of_strategies"]
