"""The state of a session: variables, random generators and iterators."""

from typing import Any

from allotment.tf.graph.nodes.node import Operation
from allotment.tf.graph.nodes.random_sources import generator_in
from allotment.tf.ops.random.draws import Source
from allotment.tf.ops.variables.resources import Storage


class State:
    """Variables, random generators and iterators of a session, which its runs change."""

    def __init__(self) -> None:
        #: The values of variables, by the node where the variable lives.
        self.storages: dict[Operation, Storage] = {}
        #: The generators of random numbers, by the argument of a node that each replaces.
        self.sources: dict[Any, Source] = {}
        #: Iterators over data sets, by the node of each.
        self.iterators: dict[Operation, Any] = {}

    def argument(self, argument: Any) -> Any:
        """Return an argument of a node as this session has it: it replaces sources of random numbers with its own."""
        return generator_in(self.sources, argument)

    def clear(self) -> None:
        """Free the variables."""
        self.storages.clear()
        self.sources.clear()
        self.iterators.clear()


__all__ = ["State"]
