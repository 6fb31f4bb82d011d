"""The nodes of a variable in a graph: one where the value lives, and those that read it."""

from typing import Any, NoReturn

from allotment.tf.dispatch import thread
from allotment.tf.graph.nodes.node import NodeGraph, Operation, SymbolicTensor
from allotment.tf.graph.nodes.rows import ANY_SHAPE, ASSIGN, HANDLE, INITIALIZED_VALUE, READ, VARIABLE
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.table import OPERATIONS
from allotment.tf.tensors.dtype import DType, as_dtype
from allotment.tf.tensors.tensor_shape import TensorShape, as_shape
from allotment.tf.variables.variable import Variable


class VariableNodes(Variable):
    """The part of a variable of a graph that makes its nodes and reads it."""

    _graph: NodeGraph
    _is_resource: bool

    def _make(self, given: Any, dtype: DType | None, shape: Any, validate_shape: bool, scope: str) -> None:
        graph = self._graph
        if callable(given):
            # Without the device scopes around it, as TensorFlow: it goes where the variable is.
            with graph.name_scope("Initializer"), graph.device(None):
                value: Any = to_tensor(given(), dtype)
        else:
            with graph.naming({id(given): "initial_value"}):
                value = to_tensor(given, dtype)
        if validate_shape and not self._is_resource and not value._shape.is_fully_defined():
            raise ValueError(
                f"initial_value must have a shape specified: {value}. Give it one, or pass `validate_shape=False`."
            )
        self._initial_value: SymbolicTensor = value
        known = TensorShape(None) if not validate_shape else value._shape
        self._shape = known if shape is None else as_shape(shape)
        row = HANDLE if self._is_resource else VARIABLE
        self._node: Operation = graph.add(row, (), [(value._dtype, self._shape)], name=scope)
        self._name = f"{self._node.name}:0"
        assign = ASSIGN if not self._is_resource else OPERATIONS["AssignVariableOp"]
        free = () if validate_shape or self._is_resource else (ANY_SHAPE,)
        self._initializer = self._add(assign, value, args=free, name="Assign")
        if self._is_resource:
            with graph.name_scope("IsInitialized"):
                # Nothing here reads it: TensorFlow's graphs have such a node.
                self._look(OPERATIONS["VarIsInitializedOp"])
            with graph.name_scope("Read"):
                self._snapshot = self._read()
        else:
            identity = OPERATIONS["Identity"]
            with graph.colocate_with(self._node):
                node = graph.add(identity, self._node._outputs, [(self.dtype, self._shape)], name="read")
            self._snapshot = node._outputs[0]

    def _add(self, row: Any, *inputs: Any, args: tuple[Any, ...] = (), name: str | None = None) -> Operation:
        """Add a node that changes the variable."""
        outputs = [] if self._is_resource else [(self.dtype, self._shape)]
        handle = self._node._outputs[0]
        return self._graph.add(row, (handle, *inputs), outputs, args, name=name, variable=self._node)

    def _look(self, row: Any, name: str | None = None) -> SymbolicTensor:
        output = (as_dtype("bool"), TensorShape([]))
        node = self._graph.add(row, self._node._outputs, [output], name=name, variable=self._node)
        return node._outputs[0]

    def _read(self, name: str | None = None) -> SymbolicTensor:
        output = (self.dtype, self._shape)
        return self._graph.add(READ, self._node._outputs, [output], name=name, variable=self._node)._outputs[
            0
        ]

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._initial_value._dtype

    @property
    def device(self) -> str:
        """The wish that was recorded for it, empty if there was none."""
        return self._node.device

    @property
    def op(self) -> Any:
        """The node where the value lives."""
        return self._node

    @property
    def handle(self) -> SymbolicTensor:
        """The output of that node."""
        return self._node._outputs[0]

    @property
    def graph(self) -> NodeGraph:  # type: ignore[override]
        """The graph it belongs to."""
        return self._graph

    @property
    def initializer(self) -> Any:
        """The operation that gives it its first value."""
        return self._initializer

    @property
    def initial_value(self) -> Any:
        """The first value."""
        return self._initial_value

    def initialized_value(self) -> Any:
        """Return its value, or the first one while it has none: for the first values of other variables."""
        with self._graph.as_default():
            node = self._graph.add(
                INITIALIZED_VALUE,
                (*self._node._outputs, self._initial_value),
                [(self.dtype, self._shape)],
                name="initialized_value",
                variable=self._node,
            )
        return node._outputs[0]

    def is_initialized(self, name: str | None = None) -> Any:
        """Return a tensor: whether it has a value in the session."""
        with self._graph.as_default():
            return self._look(OPERATIONS["VarIsInitializedOp"], name)

    def value(self) -> Any:
        """Return a tensor: its value."""
        return self._as_tensor()

    def read_value(self) -> Any:
        """Return a tensor: its value, read by a node of its own."""
        with self._graph.as_default():
            return self._read() if self._is_resource else self._read("read")

    def numpy(self) -> NoReturn:
        """Has a meaning only eagerly.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("numpy() is only available when eager execution is enabled.")

    @property
    def _source(self) -> Any:
        return self.handle

    def _as_tensor(self) -> Any:
        value = self._read() if self._is_resource else self._snapshot
        recorder = thread.state.recorder
        if recorder is not None:
            recorder.read(self, value)
        return value

    def _as_graph_element(self) -> SymbolicTensor:
        return self._snapshot


__all__ = ["VariableNodes"]
