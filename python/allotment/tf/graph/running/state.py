"""The state of a session: variables, random generators and iterators."""

from typing import Any

from allotment.tf.graph.nodes.node import Operation
from allotment.tf.graph.nodes.random_sources import generator_in
from allotment.tf.ops.random.draws import Source
from allotment.tf.ops.variables.resources import Storage


class State:
    """What nodes change in a session and find changed in its next run."""

    def __init__(self) -> None:
        #: The values of variables, by the node where the variable lives.
        self.storages: dict[Operation, Storage] = {}
        #: The generators of random numbers, by what is in their place among a node's arguments.
        self.sources: dict[Any, Source] = {}
        #: Iterators over data sets, by the node that stands for each.
        self.iterators: dict[Operation, Any] = {}

    def argument(self, argument: Any) -> Any:
        """An argument of a node as it is in this session: a source of random numbers is one of its own."""
        return generator_in(self.sources, argument)

    def clear(self) -> None:
        """Free the variables."""
        self.storages.clear()
        self.sources.clear()
        self.iterators.clear()


__all__ = ["State"]
