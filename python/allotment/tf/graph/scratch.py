"""Scratch graphs: functions of eager programs are recorded to learn the shapes of their results, and never run.

As TensorFlow's ``FuncGraph`` does for Keras: eager tensors may be inputs of nodes, variables are read as they are, and
assignments to them have no effect.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from allotment.tf.dispatch import thread
from allotment.tf.graph.graph import Graph
from allotment.tf.graph.nodes.node import SymbolicTensor
from allotment.tf.graph.recording.recording import CONST, Recording
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.table import Operation as Row
from allotment.tf.tensors.dtype import string
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.tensors.tensor_shape import TensorShape
from allotment.tf.variables.variable import Variable

#: Eager tensors up to this number of elements are constants of the graph, as in TensorFlow: shapes may depend on them.
_MOST_ELEMENTS: Final = 128


class _ScratchRecording(Recording):
    """Records operations on eager tensors, too, and ignores changes of eager variables."""

    changes_variables = False

    def check(self, op: str, name: str | None) -> None:
        """Allow the operation: variables are read, and changes of them are ignored."""

    def record(
        self, row: Row, inputs: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None
    ) -> Any:
        """Add a node for a row of the operation table. See ``Recording.record``."""
        return super().record(row, [self._captured(each) for each in inputs], args, kwargs, name)

    def _captured(self, tensor: Any) -> Any:
        """Return a tensor of the graph for an eager one: a constant, or without its value if it is large."""
        if not isinstance(tensor, EagerTensor):
            return tensor
        output = (tensor._dtype, TensorShape(tensor._array.shape))
        if tensor._dtype is string or tensor._array.size > _MOST_ELEMENTS:
            return self.graph._placeholder(*output)
        # A copy: the graph makes its constants read-only, and a variable may share the tensor's array.
        array = tensor._on_host().copy()
        array.flags.writeable = False
        return self.graph.add(CONST, (), [output], (array,))._outputs[0]


class _EagerVariable(Variable):
    """An eager variable that a function makes while it is recorded."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with outside_scratch_graph():
            super().__init__(*args, **kwargs)


class _TracedPart(SymbolicTensor):
    """A slice of an eager variable: ``assign`` has no effect."""

    __slots__ = ("_variable", "_whole")
    _variable: Variable
    _whole: SymbolicTensor

    @property
    def _key(self) -> SymbolicTensor:
        # For gradients it is the same tensor.
        return self._whole

    def assign(self, value: Any, name: str | None = None) -> Any:
        """Return the variable."""
        del name
        to_tensor(value, self._dtype)
        return self._variable


class ScratchGraph(Graph):
    """A graph that is dropped after recording. Tapes and strategies do not see what it records."""

    never_runs = True

    def __init__(self) -> None:
        super().__init__()
        self._recording = self._placement = _ScratchRecording(self)
        self._outer = thread.state.graph
        self._strategy = thread.state.strategy

    @property
    def variable_class(self) -> Any:
        """The class of variables that ``tf.Variable`` makes: eager ones."""
        return _EagerVariable

    def _part_of(self, variable: Any, tensor: SymbolicTensor) -> SymbolicTensor:
        made = _TracedPart(tensor._op, tensor._index, tensor._dtype, tensor._shape)
        made._variable, made._whole = variable, tensor
        return made

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the operations of a ``with`` block."""
        state = thread.state
        recorder = state.recorder
        state.set_recorder(None)
        state.strategy = None
        state.set_graph(self)
        try:
            yield
        finally:
            state.set_graph(self._outer)
            state.strategy = self._strategy
            state.set_recorder(recorder)


@contextmanager
def outside_scratch_graph() -> Iterator[None]:
    """Run the operations of a ``with`` block, which a scratch graph would record. Elsewhere it changes nothing."""
    state = thread.state
    graph = state.graph
    if not isinstance(graph, ScratchGraph):
        yield
        return
    recorder = state.recorder
    state.set_recorder(None)
    state.strategy = graph._strategy
    state.set_graph(graph._outer)
    try:
        yield
    finally:
        state.set_graph(graph)
        state.strategy = None
        state.set_recorder(recorder)


__all__ = ["ScratchGraph", "outside_scratch_graph"]
