"""The global step: a variable in a graph that counts training steps."""

from typing import Any

from allotment.tf.dispatch import thread
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph
from allotment.tf.graph.graph import Graph
from allotment.tf.graph.variables.graph_variable import GraphVariable
from allotment.tf.ops.array.creation import zeros
from allotment.tf.ops.name_scopes import name_scope
from allotment.tf.tensors.dtype import int64
from allotment.tf.variables.variable import Variable


def get_global_step(graph: Graph | None = None) -> Any:
    """Return a graph's global step; ``None`` without one. As ``tf.compat.v1.train.get_global_step``."""
    found = (graph or get_default_graph()).get_collection(GraphKeys.GLOBAL_STEP)
    return found[0] if found else None


def create_global_step(graph: Graph | None = None) -> Any:
    """Create a graph's global step, an int64 variable that starts at 0. As ``tf.compat.v1.train.create_global_step``.

    Raises:
        ValueError: The graph has a global step already.
    """
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    graph = graph or get_default_graph()
    options: dict[str, Any] = {"trainable": False, "name": "global_step"}
    if thread.state.graph is None and graph is get_default_graph():
        with name_scope(""):
            made: Any = Variable(zeros((), int64), **options)
    else:
        with graph.as_default(), graph.name_scope(None):
            made = GraphVariable(lambda: zeros((), int64), **options)
    graph.add_to_collection(GraphKeys.GLOBAL_STEP, made)
    return made


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """Return a graph's global step, created if necessary. As ``tf.compat.v1.train.get_or_create_global_step``."""
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


__all__ = ["create_global_step", "get_global_step", "get_or_create_global_step"]
