"""The default graph of each thread, and the process's own graph, which is the default once eager execution is off."""

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, Final, cast

from allotment.devices.dispatch import set_initial_graph
from allotment.tf.dispatch import thread
from allotment.tf.graph.graph import Graph
from allotment.tf.graph.nodes.node import SymbolicTensor, current_graph

#: The process's own graph, made by the first request.
_own: Graph | None = None
#: Held while that graph is made: threads that ask at the same time get the same graph. Making one waits for nothing.
_making: Final = threading.Lock()


def get_default_graph() -> Graph:
    """Return the graph that nodes are added to. As ``tf.compat.v1.get_default_graph``."""
    graph = current_graph()
    # Only objects of the class register in a thread's state.
    return _own_graph() if graph is None else cast("Graph", graph)


def _own_graph() -> Graph:
    global _own
    with _making:
        if _own is None:
            _own = Graph()
        return _own


def reset_default_graph() -> None:
    """Forget the process's own graph; the next one is empty. As ``tf.compat.v1.reset_default_graph``.

    Raises:
        AssertionError: Inside of ``with graph.as_default():``.
    """
    global _own
    state = thread.state
    if state.graph is not None and state.graph is not _own:
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared graph, exit the nesting "
            "and create a new graph."
        )
    was_default = state.graph is not None
    _own = None
    if was_default:
        disable_eager_execution()


def disable_eager_execution() -> None:
    """Record operations from now on instead of running them. As ``tf.compat.v1.disable_eager_execution``.

    It holds for this thread and those that are started later.
    """
    graph = _own_graph()
    set_initial_graph(graph)
    state = thread.state
    if state.graph is None or state.graph is not graph:
        state.set_graph(graph)


def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
    """Check that operations run when they are called. As ``tf.compat.v1.enable_eager_execution``.

    Raises:
        ValueError: A graph is the default.
    """
    del config, device_policy, execution_mode
    if thread.state.graph is not None:
        raise ValueError("tf.enable_eager_execution must be called at program startup.")


def in_graph(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that records in the default graph, whether eager execution is on or off."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if thread.state.graph is not None or thread.state.eager:
            return function(*args, **kwargs)
        with _own_graph().as_default():
            return function(*args, **kwargs)

    return call


def graph_of(values: Iterable[Any]) -> AbstractContextManager[Any]:
    """Return a scope in which the graph of tensors and variables is the default; eager ones change nothing."""
    for value in values:
        end = getattr(value, "_source", value)
        if isinstance(end, SymbolicTensor):
            return end.graph.as_default()
    return nullcontext()


__all__ = [
    "disable_eager_execution",
    "enable_eager_execution",
    "get_default_graph",
    "graph_of",
    "in_graph",
    "reset_default_graph",
]
