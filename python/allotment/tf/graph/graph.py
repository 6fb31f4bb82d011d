"""Graphs: nodes in the order they were made, their names, and the scopes that new ones are made in."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from allotment.devices.caller import find_stack
from allotment.devices.placement import thread
from allotment.tf.graph import operators as _operators  # noqa: F401 - gives nodes' tensors their operators
from allotment.tf.graph.collections import Collections
from allotment.tf.graph.device_scopes import Scope, apply_scopes, read_scope
from allotment.tf.graph.kernels import NO_OP
from allotment.tf.graph.names import DEFAULTS, Names
from allotment.tf.graph.node import Operation, SymbolicTensor
from allotment.tf.graph.recording import Recording
from allotment.tf.ops.table import Operation as Row
from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor_shape import TensorShape


class Graph(Collections):
    """Operations that are recorded instead of run, for a session to run them. As ``tf.Graph``."""

    def __init__(self) -> None:
        super().__init__()
        self._operations: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._names = Names()
        self._devices: list[Scope] = []
        #: Control dependencies of each scope; ``None`` in front forgets those around it.
        self._controls: list[tuple[Operation, ...] | None] = []
        #: What new nodes are on one device with; ``None`` forgets the scopes around it.
        self._colocations: list[Operation | None] = []
        #: Counts what changes: sessions place the graph again when it has.
        self._version = 0
        #: How often more became known of a shape than a node's inputs told.
        self._shapes_version = 0
        self._finalized = False
        #: Seed of the operations that have none of their own.
        self.seed: int | None = None
        #: Counts those operations, each of which has a sequence of its own.
        self._unseeded = 0
        #: What operations ask while this graph is the default.
        self._recording = Recording(self)

    @property
    def variable_class(self) -> type[Any]:
        """What ``tf.Variable`` makes in a graph."""
        from allotment.tf.graph.variables import GraphVariable

        return GraphVariable

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

    def get_operations(self) -> list[Operation]:
        """Return all nodes in the order they were made."""
        return list(self._operations)

    def get_operation_by_name(self, name: str) -> Operation:
        """Return the node of a name.

        Raises:
            TypeError: The name is no text.
            KeyError: There is none.
        """
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        found = self.as_graph_element(name, allow_tensor=False)
        assert isinstance(found, Operation)
        return found

    def get_tensor_by_name(self, name: str) -> SymbolicTensor:
        """Return the tensor of a name such as ``a:0``.

        Raises:
            TypeError: The name is no text.
            KeyError: There is none.
            ValueError: It is no name of a tensor.
        """
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        found = self.as_graph_element(name, allow_operation=False)
        assert isinstance(found, SymbolicTensor)
        return found

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Operation | SymbolicTensor:
        """Return the node or tensor that an object or a name stands for.

        Raises:
            KeyError: There is no such name.
            ValueError: It belongs to another graph, or is a name of the other sort.
            TypeError: It stands for none.
        """
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, str):
            return self._named(obj, allow_tensor, allow_operation)
        for kind, allowed, what in (
            (SymbolicTensor, allow_tensor, "Tensor"),
            (Operation, allow_operation, "Operation"),
        ):
            if isinstance(obj, kind) and allowed:
                if obj.graph is not self:
                    raise ValueError(
                        f"{what} {obj if kind is SymbolicTensor else obj.name} is not an element of this graph."
                    )
                return obj
        wanted = " or ".join(
            what for what, allowed in (("Tensor", allow_tensor), ("Operation", allow_operation)) if allowed
        )
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {wanted}.")

    def _named(self, name: str, allow_tensor: bool, allow_operation: bool) -> Operation | SymbolicTensor:
        if ":" not in name:
            if name not in self._by_name:
                raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
            if not allow_operation:
                raise ValueError(
                    f"The name {name!r} refers to an Operation, not a Tensor. Tensor names must be of the form "
                    '"<op_name>:<output_index>".'
                )
            return self._by_name[name]
        head, _, tail = name.partition(":")
        if not tail.isdecimal() or not head:
            raise ValueError(
                f"The name {name!r} looks a like a Tensor name, but is not a valid one. Tensor names must be of the "
                'form "<op_name>:<output_index>".'
            )
        operation = self._by_name.get(head)
        if operation is None:
            raise KeyError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, {head!r}, does not exist "
                "in the graph."
            )
        if int(tail) >= len(operation._outputs):
            raise KeyError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, {head!r}, exists but only "
                f"has {len(operation._outputs)} outputs."
            )
        if not allow_tensor:
            raise ValueError(f"The name {name!r} refers to a Tensor, not an Operation.")
        return operation._outputs[int(tail)]

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """Return the name that a node of this name would get in the current scope."""
        return self._names.unique(name, mark_as_used)

    @contextmanager
    def as_default(self) -> Iterator["Graph"]:
        """Record the operations of a ``with`` block in this graph, in this thread."""
        state = thread.state
        outer = state.graph
        state.graph, state.placement = self, None
        try:
            yield self
        finally:
            state.graph, state.placement = outer, None

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
        """Wish a device for the nodes that are made in a ``with`` block (placement, section 7.1).

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
                # What waits for it already need not say so again.
                if all(tensor._op is not before for tensor in operation._inputs):
                    found[before] = None
        operation._control_inputs = tuple(found)


__all__ = ["Graph"]
