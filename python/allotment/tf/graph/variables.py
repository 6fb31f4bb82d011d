"""Variables of graphs: a node where the value lives, and nodes that read and change it in a session.

There are two kinds, as in TensorFlow: resource variables (``VarHandleOp``, read by a node each time they are used)
and the reference variables of its first releases (``VariableV2``, with one node that reads).
"""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NoReturn

from allotment.devices.placement import thread
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph
from allotment.tf.graph.kernels import (
    ANY_SHAPE,
    ASSIGN,
    ASSIGN_ADD,
    ASSIGN_SUBTRACT,
    HANDLE,
    INITIALIZED_VALUE,
    READ,
    VARIABLE,
)
from allotment.tf.graph.node import Operation, SymbolicTensor, session_for
from allotment.tf.graph.operators import methods_of
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.operators import attach
from allotment.tf.ops.public import public
from allotment.tf.ops.table import OPERATIONS
from allotment.tf.ops.table import Operation as Row
from allotment.tf.ops.variables import resources
from allotment.tf.ops.variables.augmented import AUGMENTED
from allotment.tf.tensors.dtype import DType, as_dtype
from allotment.tf.tensors.tensor_shape import TensorShape, as_shape
from allotment.tf.variables.aggregation import VariableAggregation, VariableSynchronization
from allotment.tf.variables.variable import Variable

#: Whether variables are resources unless they say so.
_resources = True


def resources_by_default() -> bool:
    """Whether variables of graphs are resources unless they say so."""
    return _resources


def enable_resource_variables() -> None:
    """Make resource variables from now on. As ``tf.compat.v1.enable_resource_variables``."""
    global _resources
    _resources = True


def disable_resource_variables() -> None:
    """Make reference variables from now on, in graphs. As ``tf.compat.v1.disable_resource_variables``."""
    global _resources
    _resources = False


def _in_own_graph(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that records in the variable's graph, whichever is the default."""

    @wraps(method)
    def call(self: "GraphVariable", *args: Any, **kwargs: Any) -> Any:
        if thread.state.graph is self._graph:
            return method(self, *args, **kwargs)
        with self._graph.as_default():
            return method(self, *args, **kwargs)

    return call


def _change(called: str, resource_row: Row, reference_row: Row, done: str) -> Callable[..., Any]:
    """The method that records a change of the value by another one."""

    @_in_own_graph
    def method(
        self: "GraphVariable",
        delta: Any,
        use_locking: bool = False,  # noqa: ARG001 - TensorFlow's signature
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        row = resource_row if self._is_resource else reference_row
        return self._changed(row, self._given(delta), name=name, read_value=read_value)

    doc = f"Record that something is {done}. Returns the new value, or the node without ``read_value``."
    return public(method, called, doc)


def _augmented(method: str) -> Callable[[Any, Any], Any]:
    """What an augmented assignment makes of a reference variable, a tensor; resources refuse it."""
    plain = f"__{method[3:]}"

    def call(self: "GraphVariable", other: Any) -> Any:
        return AUGMENTED[method](self, other) if self._is_resource else getattr(self, plain)(other)

    return call


class GraphVariable(Variable):
    """A variable of a graph. Made by ``tf.Variable`` while a graph is the default.

    Args:
        initial_value: The first value, or a function without arguments that returns it.
        trainable: Whether it is in the collection of trainable variables, true unless given.
        collections: The collections it is in, that of global variables unless given.
        validate_shape: Without it values may have any shape.
        name: The name, ``Variable`` unless given.
        dtype: The element type; without it that of the value.
        shape: The shape of all values; without it that of the first.
        use_resource: A resource or a reference variable.
        options: TensorFlow's other arguments; not looked at but for ``constraint``, ``synchronization``,
            ``aggregation``.

    Raises:
        ValueError: No value.
    """

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: Any = None,
        constraint: Any = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> None:
        del caching_device, variable_def, expected_shape, import_scope, experimental_enable_variable_lifting
        if thread.state.strategy is not None:
            thread.state.strategy.refuse_graph()
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        self._graph = get_default_graph()
        self._trainable = True if trainable is None else bool(trainable)
        self._constraint = constraint
        self._synchronization = synchronization
        self._aggregation = aggregation
        self._is_resource = resources_by_default() if use_resource is None else bool(use_resource)
        wanted = None if dtype is None else as_dtype(dtype)
        with self._graph.control_dependencies(None), self._graph.name_scope(name or "Variable") as scope:
            self._make(initial_value, wanted, shape, validate_shape, scope)
        keys = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
        if self._trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
            keys.append(GraphKeys.TRAINABLE_VARIABLES)
        self._graph.add_to_collections(keys, self)

    def _make(self, given: Any, dtype: DType | None, shape: Any, validate_shape: bool, scope: str) -> None:
        graph = self._graph
        if callable(given):
            # Without the device scopes around it, as TensorFlow: it goes where the variable is.
            with graph.name_scope("Initializer"), graph.device(None):
                value: Any = to_tensor(given(), dtype)
        else:
            with graph._recording.naming({id(given): "initial_value"}):
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
                self._initialized = self._look(OPERATIONS["VarIsInitializedOp"])
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
    def graph(self) -> Any:
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

    def eval(self, session: Any = None) -> Any:
        """Return the value that it has in a session, without one in the default session."""
        return self._snapshot.eval(session=session)

    def load(self, value: Any, session: Any = None) -> None:
        """Give it a value in a session, without one in the default session.

        Raises:
            ValueError: There is no default session.
        """
        chosen = session_for(self._snapshot, session, "load a variable using `load()`", "v.load(value, sess)")
        chosen.run(self._initializer, {self._initial_value: value})

    def _changed(
        self,
        row: Any,
        *inputs: Any,
        args: tuple[Any, ...] = (),
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Add a node that changes it; returns the value after that, or the node without ``read_value``."""
        node = self._add(row, *inputs, args=args, name=name)
        if not read_value:
            return node
        if not self._is_resource:
            return node._outputs[0]
        with self._graph.control_dependencies([node]):
            return self._read(f"{node.name}/ReadVariableOp/")

    def _given(self, value: Any) -> Any:
        tensor: Any = to_tensor(value, self.dtype)
        return tensor

    @_in_own_graph
    def assign(
        self,
        value: Any,
        use_locking: bool = False,  # noqa: ARG002 - TensorFlow's signature
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Record that the value is replaced. Returns the new value, or the node without ``read_value``.

        Raises:
            ValueError: Another shape or type than the variable's.
        """
        tensor = self._given(value)
        if not self._shape.is_compatible_with(tensor.shape):
            raise ValueError(
                f"Cannot assign value to variable '{self.name}': Shape mismatch. The variable shape {self._shape}, and "
                f"the assigned value shape {tensor.shape} are incompatible."
            )
        row = OPERATIONS["AssignVariableOp"] if self._is_resource else ASSIGN
        return self._changed(row, tensor, name=name, read_value=read_value)

    @_in_own_graph
    def _assigned_any_shape(self, value: Any, name: str | None) -> Any:
        """Record that the value is replaced by one of any shape; resources keep theirs."""
        if self._is_resource:
            return self.assign(value, name=name)
        tensor = self._given(value)
        node = self._add(ASSIGN, tensor, args=(ANY_SHAPE,), name=name)
        node._outputs[0]._shape = tensor._shape
        return node._outputs[0]

    assign_add = _change("assign_add", resources.ADD, ASSIGN_ADD, "added")
    assign_sub = _change("assign_sub", resources.SUBTRACT, ASSIGN_SUBTRACT, "subtracted")

    @_in_own_graph
    def _scatter(self, row: Any, indices: Any, updates: Any, name: str | None) -> Any:
        called = row.name if self._is_resource else row.name.removeprefix("Resource")
        return self._changed(row, self._given(updates), to_tensor(indices), name=name or called)

    def __getitem__(self, key: Any) -> Any:
        with self._graph.as_default():
            return self._as_tensor()[key]

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("'Variable' object is not iterable.")

    def __bool__(self) -> bool:
        return bool(self._snapshot)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self._snapshot.__array__()
        raise AssertionError

    def __hash__(self) -> int:
        return id(self)

    def __copy__(self) -> "GraphVariable":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise NotImplementedError("__deepcopy__() is only available when eager execution is enabled.")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a variable of a graph cannot be pickled: its value is a session's. Fetch the value")

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={self._shape} dtype={self.dtype.name}>"


attach(GraphVariable, {name: method for name, method in methods_of().items() if name != "__getitem__"})
attach(GraphVariable, {name: _augmented(name) for name in AUGMENTED})

__all__ = ["GraphVariable", "disable_resource_variables", "enable_resource_variables", "resources_by_default"]
