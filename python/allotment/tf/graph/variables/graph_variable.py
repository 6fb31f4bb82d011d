"""Variables of graphs: a node where the value lives, and nodes that read and change it in a session.

There are two kinds, as in TensorFlow: resource variables (``VarHandleOp``, read by a node each time they are used)
and the reference variables of its first releases (``VariableV2``, with one node that reads).
"""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NoReturn

from allotment.tf.dispatch import thread
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.nodes.default_session import session_for
from allotment.tf.graph.nodes.node import current_graph
from allotment.tf.graph.nodes.rows import (
    ANY_SHAPE,
    ASSIGN,
    ASSIGN_ADD,
    ASSIGN_SUBTRACT,
)
from allotment.tf.graph.recording.operators import methods_of
from allotment.tf.graph.variables.kinds import resources_by_default
from allotment.tf.graph.variables.variable_nodes import VariableNodes
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.operators import attach
from allotment.tf.ops.public import public
from allotment.tf.ops.table import OPERATIONS
from allotment.tf.ops.table import Operation as Row
from allotment.tf.ops.variables import resources
from allotment.tf.ops.variables.augmented import AUGMENTED
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.variables.aggregation import VariableAggregation, VariableSynchronization


def _in_own_graph(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method record in the variable's graph, whichever graph is the default."""

    @wraps(method)
    def call(self: "GraphVariable", *args: Any, **kwargs: Any) -> Any:
        if thread.state.graph is self._graph:
            return method(self, *args, **kwargs)
        with self._graph.as_default():
            return method(self, *args, **kwargs)

    return call


def _change(called: str, resource_row: Row, reference_row: Row, done: str) -> Callable[..., Any]:
    """Make the method that records an addition or subtraction."""

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
    """Make the method of an augmented assignment: a tensor for reference variables; resources refuse it."""
    plain = f"__{method[3:]}"

    def call(self: "GraphVariable", other: Any) -> Any:
        return AUGMENTED[method](self, other) if self._is_resource else getattr(self, plain)(other)

    return call


class GraphVariable(VariableNodes):
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
        graph = current_graph()
        assert graph is not None, "called while a graph is the default only"
        self._graph = graph
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
    def _scatter(
        self, row: Any, indices: Any, updates: Any, name: str | None, read_value: bool = True
    ) -> Any:
        called = row.name if self._is_resource else row.name.removeprefix("Resource")
        given = self._given(updates), to_tensor(indices)
        return self._changed(row, *given, name=name or called, read_value=read_value)

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

__all__ = ["GraphVariable"]
