"""The thread's state, with the types of the floors of TensorFlow's API: what graphs, tapes and strategies offer.

``devices.dispatch`` keeps the state and calls graphs through its own small protocol. Here is the rest of what lower
rooms ask of upper ones, so that ``ops`` need not import ``graph``, nor ``variable`` ``distribute``.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NoReturn, Protocol, cast

from allotment.devices import dispatch
from allotment.devices.dispatch import DefaultGraph
from allotment.tf.ops.table import Operation
from allotment.tf.tensors.dtype import DType


class Recording(Protocol):
    """Records operations as nodes of a graph. Tensors are those of the graph."""

    def record(
        self,
        row: Operation,
        inputs: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None,
    ) -> Any:
        """Add a node for a row of the operation table; returns its outputs."""

    def constant(
        self,
        value: Any,
        dtype: DType | None = None,
        shape: tuple[int, ...] | None = None,
        name: str | None = None,
        repeats_last: bool = False,
    ) -> Any:
        """Add a constant."""

    def pair(self, function: Callable[..., Any], pair: Callable[..., Any], x: Any, y: Any, name: str) -> Any:
        """Record an operation with two operands, each a tensor or a Python value."""

    def naming(self, operands: dict[int, str]) -> AbstractContextManager[None]:
        """Name the constants made of operands, which ``id`` identifies, in a ``with`` block."""

    def numbers(self, value: Any, what: str = ...) -> Any:
        """Read whole numbers of an argument, which may be known only when the graph runs."""

    def source(self, op: str, seed: int | None) -> Any:
        """Return where a node starts to draw random numbers."""

    def fixed_source(self, numbers: Sequence[int]) -> Any:
        """Return where a stateless node starts to draw in every run."""


class Names(Protocol):
    """Names of nodes and scopes of a graph."""

    scope: str


class RecordingGraph(DefaultGraph, Protocol):
    """A graph as the rooms below ``graph`` see it."""

    seed: int | None
    #: Whether the graph is only recorded to learn the shapes of what a function computes.
    never_runs: bool

    @property
    def _recording(self) -> Recording: ...
    @property
    def _names(self) -> Names: ...

    @property
    def variable_class(self) -> type[Any]:
        """The class of variables that ``tf.Variable`` makes in this graph."""

    def name_scope(self, name: str | None) -> AbstractContextManager[str]:
        """Put a name in front of the names of nodes made in a ``with`` block."""

    def control_dependencies(self, control_inputs: Any) -> AbstractContextManager[Any]:
        """Run nodes before those made in a ``with`` block."""

    def _part_of(self, variable: Any, tensor: Any) -> Any:
        """Return a slice of an eager variable, given as a tensor of the graph."""

    def _placeholder(self, dtype: DType, shape: Any) -> Any:
        """Add a tensor whose value is fed."""

    def loop(self, *args: Any) -> tuple[list[Any], list[Any]]:
        """Add a loop over slices: the function, the sequences, the first values, the direction and a name."""

    def group(self, inputs: Sequence[Any], name: str) -> Any:
        """Add a node that waits for others."""


class TapeRecorder(Protocol):
    """The gradient tapes of a thread."""

    def record(
        self,
        row: Operation,
        inputs: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        made: Any,
        *,
        replaces: bool = False,
    ) -> None:
        """Record an operation that ran, or that a graph recorded; it may replace those that made the same tensors."""

    def read(self, variable: Any, value: Any) -> None:
        """Record that a variable was read."""


class Replica(Protocol):
    """One replica of a strategy, while a function runs once for each."""

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """Add values, or take their mean, over all replicas."""

    def merge_call(self, merge_fn: Callable[..., Any]) -> Any:
        """Call a function once for all replicas."""


class StrategyScope(Protocol):
    """The scope of a strategy that a thread is in."""

    @property
    def replica(self) -> Replica | None:
        """The replica that the thread runs, if it runs one."""

    def new_variable(self, *args: Any, **kwargs: Any) -> Any:
        """Make a variable for all replicas."""

    def refuse_graph(self) -> NoReturn:
        """Raise the error of a strategy that cannot record in a graph."""


#: The state of this thread. Everything that registers in it offers what these protocols ask for.
thread: Final = cast("dispatch.Thread[RecordingGraph, TapeRecorder, StrategyScope]", dispatch.thread)

#: One thread's state, as ``thread.state``.
ThreadState = dispatch.ThreadState[RecordingGraph, TapeRecorder, StrategyScope]

__all__ = ["RecordingGraph", "Replica", "StrategyScope", "TapeRecorder", "ThreadState", "thread"]
