"""Nodes of a graph: recorded operations, and the tensors that they will make.

Longer than 300 lines: operations, tensors and the interface of graphs refer to each other.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

from allotment.devices.messages.call_site import CallStack
from allotment.tf.dispatch import RecordingGraph, thread
from allotment.tf.graph.nodes.default_session import Runner, session_for
from allotment.tf.graph.nodes.names import Names
from allotment.tf.graph.nodes.node_def import AttrValue, NodeDef, attribute_values
from allotment.tf.graph.nodes.valueless import ValuelessTensor
from allotment.tf.names.absent_methods import lacks
from allotment.tf.ops.inference.abstract import Abstract
from allotment.tf.ops.inference.known_values import constant_value
from allotment.tf.ops.inference.symbolic import Known
from allotment.tf.ops.table import Operation as Row
from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor_shape import TensorShape, as_shape


@lacks("experimental_set_type", "from_node_def", "op_def", "traceback")
class Operation:
    """A node: a row of the operation table with its inputs and arguments. As ``tf.Operation``.

    Made by operations while a graph is the default, never by calling the class.
    """

    __slots__ = (
        "__weakref__",
        "_args",
        "_colocated",
        "_control_inputs",
        "_count",
        "_device",
        "_graph",
        "_inputs",
        "_kwargs",
        "_name",
        "_number",
        "_outputs",
        "_row",
        "_stack",
        "_variable",
    )

    def __init__(
        self,
        graph: "NodeGraph",
        row: Row,
        name: str,
        inputs: Sequence["SymbolicTensor"],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        stack: CallStack,
    ) -> None:
        self._graph = graph
        self._row = row
        self._name = name
        self._inputs = tuple(inputs)
        #: The number of inputs of the row; behind them come those that are numbers among its arguments.
        self._count = len(self._inputs)
        self._args = args
        self._kwargs = kwargs
        self._stack = stack
        self._device = ""
        self._outputs: tuple[SymbolicTensor, ...] = ()
        self._control_inputs: tuple[Operation, ...] = ()
        #: Nodes that must be on the same device.
        self._colocated: tuple[Operation, ...] = ()
        #: The node that holds the variable which this one reads or changes.
        self._variable: Operation | None = None
        #: How many nodes the graph had before.
        self._number = 0

    @property
    def graph(self) -> "NodeGraph":
        """The graph it belongs to."""
        return self._graph

    @property
    def name(self) -> str:
        """Its name, which is unique in the graph."""
        return self._name

    @property
    def type(self) -> str:
        """The name of its row in the operation table, as ``MatMul``."""
        return self._row.name

    @property
    def device(self) -> str:
        """The requested device, empty if there is none."""
        return self._device

    @property
    def inputs(self) -> tuple["SymbolicTensor", ...]:
        """The tensors it computes with."""
        return self._inputs

    @property
    def outputs(self) -> list["SymbolicTensor"]:
        """The tensors it makes."""
        return list(self._outputs)

    @property
    def control_inputs(self) -> list["Operation"]:
        """The operations that run before it although it takes nothing from them."""
        return list(self._control_inputs)

    @property
    def _computed_with(self) -> tuple["SymbolicTensor", ...]:
        """The inputs that have values: not the handle of a variable, which the session knows."""
        if self._variable is None:
            return self._inputs
        return tuple(each for each in self._inputs if each._op is not self._variable)

    @property
    def node_def(self) -> NodeDef:
        """A description of it, as TensorFlow's message ``NodeDef``: a copy."""
        inputs = [_input_name(each) for each in self._inputs]
        inputs += [f"^{each._name}" for each in self._control_inputs]
        return NodeDef(self._name, self.type, inputs, self._device, self._attributes())

    def get_attr(self, name: str) -> Any:
        """Return an attribute: an element type, shape or option.

        Raises:
            ValueError: It has none of this name.
        """
        found = self._attributes()
        if name not in found:
            raise ValueError(
                f"Operation '{self._name}' has no attr named '{name}'. There are: {', '.join(sorted(found))}."
            )
        return found[name]._public()

    def _attributes(self) -> dict[str, AttrValue]:
        groups = self.colocation_groups()
        return attribute_values(
            self.type,
            self._kwargs,
            () if self._variable is not None else [each._dtype for each in self._inputs],
            [(each._dtype, each._shape) for each in self._outputs],
            () if groups == [f"loc:@{self._name}".encode()] else tuple(groups),
        )

    def values(self) -> tuple["SymbolicTensor", ...]:
        """Return ``outputs`` as a tuple."""
        return self._outputs

    def colocation_groups(self) -> list[bytes]:
        """The groups of operations that share a device with it, by the name of a member."""
        if self._variable is not None and self._variable.type == "VariableV2":
            return [f"loc:@{self._variable.name}".encode()]
        return [f"loc:@{other.name}".encode() for other in self._colocated] or [f"loc:@{self._name}".encode()]

    def run(self, feed_dict: Any = None, session: Runner | None = None) -> None:
        """Run it in a session, without one in the default session.

        Raises:
            ValueError: There is no default session, or it is one of another graph.
        """
        session_for(self, session, "execute operation using `run()`", "sess.run(op)").run(self, feed_dict)

    def _add_control_input(self, operation: "Operation") -> None:
        self._add_control_inputs([operation])

    def _add_control_inputs(self, operations: Iterable["Operation"]) -> None:
        """Make operations run before this one. The graph is looked at again by sessions."""
        self._control_inputs += tuple(each for each in operations if each not in self._control_inputs)
        self._graph._version += 1

    def _set_device(self, device: Any) -> None:
        """Request another device."""
        self._device = device if isinstance(device, str) else device.to_string()
        self._graph._version += 1

    def __str__(self) -> str:
        lines = [f'name: "{self._name}"', f'op: "{self.type}"']
        lines += [f'input: "{_input_name(each)}"' for each in self._inputs]
        lines += [f'input: "^{each.name}"' for each in self._control_inputs]
        if self._device:
            lines.append(f'device: "{self._device}"')
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return f"<tf.Operation '{self._name}' type={self.type}>"


def _input_name(tensor: "SymbolicTensor") -> str:
    return tensor.op.name if tensor.value_index == 0 else tensor.name


class SymbolicTensor(ValuelessTensor):
    """An output of a node, with a type and a shape that may be known in part; only a running session has its value."""

    __slots__ = ("__weakref__", "_dtype", "_index", "_keras_logits", "_known", "_op", "_shape", "_value")
    #: The logits of probabilities, set by the activations of Keras.
    _keras_logits: Any

    def __init__(self, operation: Operation, index: int, dtype: DType, shape: TensorShape) -> None:
        self._op = operation
        self._index = index
        self._dtype = dtype
        self._shape = shape
        self._known: Abstract | None = None
        #: The known part of its value, and the ``_shapes_version`` it is of; ``None`` if it cannot change.
        self._value: tuple[int | None, Known | None] | None = None

    @property
    def op(self) -> Operation:
        """The operation that makes it."""
        return self._op

    @property
    def graph(self) -> "NodeGraph":
        """The graph it belongs to."""
        return self._op._graph

    def _static_value(self) -> Any:
        return constant_value(self)

    @property
    def value_index(self) -> int:
        """Which output of its operation it is."""
        return self._index

    @property
    def name(self) -> str:  # type: ignore[override]
        """The operation's name and the number of the output, as in ``a:0``."""
        return f"{self._op._name}:{self._index}"

    @property
    def device(self) -> str:
        """The requested device of its operation, empty if there is none."""
        return self._op._device

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The lengths of the axes, as far as they are known."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Number of axes.

        Raises:
            ValueError: It is not known.
        """
        return self._array.ndim  # type: ignore[no-any-return]

    def set_shape(self, shape: Any) -> None:
        """Add to the known part of the shape.

        Raises:
            ValueError: What is known contradicts it.
        """
        wanted = as_shape(shape)
        if not wanted.is_compatible_with(self._shape):
            raise ValueError(f"Shapes {self._shape} and {wanted} are not compatible")
        merged = self._shape.merge_with(wanted)
        if merged._dims != self._shape._dims:
            self._shape = merged
            self._known = None
            self.graph._shapes_version += 1

    def consumers(self) -> list[Operation]:
        """Return the operations that compute with it, one that takes it twice two times."""
        return [each for each in self.graph.get_operations() for tensor in each._inputs if tensor is self]

    def eval(self, feed_dict: Any = None, session: Runner | None = None) -> Any:
        """Return its value, computed in a session, without one in the default session.

        Raises:
            ValueError: There is no default session, or it is one of another graph.
        """
        return session_for(self, session, "evaluate tensor using `eval()`", "sess.eval(t)").run(
            self, feed_dict
        )

    @property
    def _array(self) -> Any:
        """The known part of the value, for functions that look at shapes while they record."""
        known = self._known
        if known is None:
            known = self._known = Abstract(self)
        return known

    @property
    def _key(self) -> "SymbolicTensor":
        # The graph keeps it, so that it can stand for itself.
        return self

    # Tensors are keys of dictionaries, in feeds and here; `recording.operators` makes `==` ask for identity.
    __hash__ = object.__hash__

    def __str__(self) -> str:
        shape = "" if self._shape.rank is None else f", shape={self._shape}"
        return f'Tensor("{self.name}"{shape}, dtype={self._dtype.name})'

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self._shape} dtype={self._dtype.name}>"


class NodeGraph(RecordingGraph, Protocol):
    """A graph as the floors below the class ``Graph`` use it."""

    seed: int | None
    never_runs: bool
    #: Counts the operations without a seed of their own.
    _unseeded: int
    #: Counts changes; sessions place the graph again after one.
    _version: int
    #: Counts changes of known shapes after their nodes were made.
    _shapes_version: int

    @property
    def _names(self) -> Names: ...
    def get_operations(self) -> list[Operation]:
        """Return all nodes in the order they were made."""

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
        """Add a node in the current scopes."""

    def _placeholder(self, dtype: DType, shape: TensorShape, name: str | None = None) -> SymbolicTensor:
        """Add a tensor that is fed with a value."""

    def naming(self, operands: dict[int, str]) -> AbstractContextManager[None]:
        """Name the constants made of operands, which ``id`` identifies, in a ``with`` block."""

    def as_default(self) -> AbstractContextManager[Any]:
        """Record the operations of a ``with`` block in this graph."""

    def name_scope(self, name: str | None) -> AbstractContextManager[str]:
        """Put a name in front of the names of nodes made in a ``with`` block."""

    def device(self, device_name_or_function: Any) -> AbstractContextManager[None]:
        """Request a device for the nodes made in a ``with`` block."""

    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
        """Run operations before the nodes made in a ``with`` block."""

    def colocate_with(self, op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
        """Put the nodes made in a ``with`` block on the device of another one."""

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Keep a value under each of several names."""

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """Return the values under a name."""


def current_graph() -> NodeGraph | None:
    """Return the graph that records this thread's operations; ``None`` while they run."""
    return cast("NodeGraph | None", thread.state.graph)


def variable_read(tensor: SymbolicTensor) -> Operation | None:
    """Return the reference variable whose value a tensor is when the tensor is needed; else ``None``."""
    operation = tensor._op
    if operation.type == "Identity":
        operation = operation._inputs[0]._op
    return operation if operation.type == "VariableV2" else None


__all__ = ["NodeGraph", "Operation", "SymbolicTensor", "current_graph", "variable_read"]
