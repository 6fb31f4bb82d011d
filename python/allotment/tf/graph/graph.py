"""Graphs: nodes in the order they were made, their names, and the scopes that new ones are made in."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

from allotment.devices.messages.call_site import find_stack
from allotment.tf.dispatch import thread
from allotment.tf.graph.collections import Collections
from allotment.tf.graph.nodes.device_scopes import Scope, apply_scopes, read_scope
from allotment.tf.graph.nodes.lookup import NodeLookup
from allotment.tf.graph.nodes.names import DEFAULTS, Names
from allotment.tf.graph.nodes.node import Operation, SymbolicTensor
from allotment.tf.graph.nodes.rows import NO_OP, PLACEHOLDER
from allotment.tf.graph.recording import operators as _operators  # noqa: F401 - attaches operators to tensors
from allotment.tf.graph.recording.recording import Recording
from allotment.tf.graph.variables.graph_variable import GraphVariable
from allotment.tf.names.absent_methods import lacks
from allotment.tf.ops.table import Operation as Row
from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor_shape import TensorShape


@lacks(
    "as_graph_def",
    "building_function",
    "collections",
    "container",
    "create_op",
    "get_name_scope",
    "gradient_override_map",
    "graph_def_versions",
    "is_feedable",
    "is_fetchable",
    "op_def_for_type",
    "prevent_feeding",
    "prevent_fetching",
    "switch_to_thread_local",
)
class Graph(NodeLookup, Collections):
    """Operations that are recorded instead of run, for a session to run them. As ``tf.Graph``."""

    never_runs = False

    def __init__(self) -> None:
        super().__init__()
        self._names = Names()
        self._devices: list[Scope] = []
        #: Control dependencies of each scope; ``None`` in front forgets those around it.
        self._controls: list[tuple[Operation, ...] | None] = []
        #: Nodes whose device new nodes share; ``None`` forgets the scopes around it.
        self._colocations: list[Operation | None] = []
        #: Counts changes; sessions place the graph again after one.
        self._version = 0
        #: Counts changes of known shapes after their nodes were made.
        self._shapes_version = 0
        self._finalized = False
        #: Seed of the operations that have none of their own.
        self.seed: int | None = None
        #: Counts those operations, each of which has a sequence of its own.
        self._unseeded = 0
        #: Takes the place of a placement while this graph is the default.
        self._recording = self._placement = Recording(self)

    @property
    def variable_class(self) -> type[GraphVariable]:
        """The class of variables that ``tf.Variable`` makes in a graph."""
        return GraphVariable

    def naming(self, operands: dict[int, str]) -> AbstractContextManager[None]:
        """Name the constants made of operands, which ``id`` identifies, in a ``with`` block."""
        return self._recording.naming(operands)

    @property
    def version(self) -> int:
        """Counts the nodes and whatever else changes."""
        return self._version

    @property
    def finalized(self) -> bool:
        """Whether nodes can no longer be added."""
        return self._finalized

    def finalize(self) -> None:
        """Let no node be added any more."""
        self._finalized = True

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """Return the name that a node of this name would get in the current scope."""
        return self._names.unique(name, mark_as_used)

    @contextmanager
    def as_default(self) -> Iterator["Graph"]:
        """Record the operations of a ``with`` block in this graph, in this thread."""
        state = thread.state
        outer = state.graph
        state.set_graph(self)
        try:
            yield self
        finally:
            state.set_graph(outer)

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Put a name in front of the names of nodes that are made in a ``with`` block.

        Raises:
            ValueError: No name that a scope may have.
        """
        if name is not None and not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        entered, outer = self._names.enter(name)
        try:
            yield entered
        finally:
            self._names.scope = outer

    @contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Request a device for the nodes that are made in a ``with`` block.

        Raises:
            ValueError: Not a device name.
            RuntimeError: Another scope was entered inside the block and not left.
        """
        scope = read_scope(device_name_or_function)
        outer = self._devices
        inner = self._devices = [*outer, scope]
        try:
            yield
        finally:
            if self._devices is not inner:
                raise RuntimeError("Exiting device scope without proper scope nesting.")
            self._devices = outer

    @contextmanager
    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> Iterator[None]:
        """Let operations run before the nodes that are made in a ``with`` block; ``None`` forgets outer blocks.

        Raises:
            TypeError: Something that is no operation or tensor.
            ValueError: One of another graph.
        """
        outer = self._controls
        if control_inputs is None:
            self._controls = [None]
        else:
            found = [self.as_graph_element(each) for each in control_inputs]
            self._controls = [
                *outer,
                tuple(each if isinstance(each, Operation) else each._op for each in found),
            ]
        try:
            yield
        finally:
            self._controls = outer

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Put the nodes that are made in a ``with`` block on the device of another one; ``None`` forgets outer ones.

        Raises:
            ValueError: The operation is of another graph, or ``None`` without ``ignore_existing``.
        """
        if op is None and not ignore_existing:
            raise ValueError("Trying to reset colocation (op is None) but ignore_existing is not True")
        outer, devices = self._colocations, self._devices
        if op is None:
            self._colocations = [None]
        else:
            found = self.as_graph_element(op)
            target = found if isinstance(found, Operation) else found._op
            self._colocations = [target] if ignore_existing else [*outer, target]
            # The device is that of the other one, not of the scopes around this.
            self._devices = []
        try:
            yield
        finally:
            self._colocations, self._devices = outer, devices

    def _part_of(self, variable: Any, tensor: SymbolicTensor) -> SymbolicTensor:  # noqa: ARG002 - see scratch graphs
        return tensor

    def _placeholder(self, dtype: DType, shape: TensorShape, name: str | None = None) -> SymbolicTensor:
        """Add a tensor that is fed with a value."""
        return self.add(PLACEHOLDER, (), [(dtype, shape)], name=name)._outputs[0]

    def loop(self, *args: Any) -> tuple[list[SymbolicTensor], list[SymbolicTensor]]:
        """Add a loop over the slices of sequences. See ``graph.loops``."""
        # Loaded when a program needs it: loops stand on gradients, and gradients on graphs.
        made: tuple[list[SymbolicTensor], list[SymbolicTensor]]
        made = import_module("allotment.tf.graph.loops").loop(self, *args)
        return made

    def group(self, inputs: Sequence[Any], name: str) -> Operation:
        """Add an operation that is done when all inputs are."""
        with self.control_dependencies(inputs):
            return self.add(NO_OP, (), (), name=name)

    def add(
        self,
        row: Row,
        inputs: Sequence[SymbolicTensor],
        outputs: Sequence[tuple[DType, TensorShape]],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        name: str | None = None,
        variable: Operation | None = None,
    ) -> Operation:
        """Add a node in the scopes of this moment.

        Raises:
            RuntimeError: The graph is finalized.
            ValueError: No name that a node may have.
        """
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        full = self._names.of_operation(name or DEFAULTS.get(row.name, row.name))
        while full in self._by_name:
            # A name that was given whole, with a slash behind it, a second time.
            full = self._names.counted(full)
        operation = Operation(self, row, full, inputs, args, kwargs or {}, find_stack())
        operation._outputs = tuple(
            SymbolicTensor(operation, index, dtype, shape) for index, (dtype, shape) in enumerate(outputs)
        )
        operation._variable = variable
        self._apply_controls(operation)
        if self._colocations:
            operation._colocated = tuple(each for each in self._colocations if each is not None)
        if operation._colocated:
            operation._device = operation._colocated[-1]._device
        if variable is None:
            apply_scopes(self._devices, operation)
        else:
            # It runs where the value is, whatever a scope or its function says of other nodes.
            operation._device = variable._device
        operation._number = len(self._operations)
        self._operations.append(operation)
        self._by_name[full] = operation
        self._version += 1
        return operation

    def _apply_controls(self, operation: Operation) -> None:
        if not self._controls:
            return
        found: dict[Operation, None] = {}
        for each in self._controls:
            for before in each or ():
                # A node that has it as an input waits for it anyway.
                if all(tensor._op is not before for tensor in operation._inputs):
                    found[before] = None
        operation._control_inputs = tuple(found)


__all__ = ["Graph"]
