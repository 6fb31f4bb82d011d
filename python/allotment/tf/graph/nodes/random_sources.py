"""Where nodes draw random numbers. A node knows where its numbers start; the generators are a session's.

As in TensorFlow, each new session starts the numbers of a node anew if its seeds say where:

    graph's seed   operation's   numbers
    ------------   -----------   ---------------------------------------------------
    none           none          those of the program, which all such nodes share
    set            none          a sequence for the node, counted in its graph
    none           set           a sequence for the operation and its seed
    set            set           a sequence for the operation, its seed and the graph's

Each run of a session goes on in its sequences.
"""

import copy
from typing import Any, Final

from allotment.tf.ops.random.draws import Source
from allotment.tf.ops.random.seeds import shared_generator, started
from allotment.tf.ops.table import StatefulArgument


class Start(StatefulArgument):
    """Where the numbers of one node start."""

    __slots__ = ("words",)

    def __init__(self, *words: str | int) -> None:
        self.words = words

    def generator(self) -> Source:
        """Make a generator that starts here."""
        return started(*self.words)


class Fixed(Start):
    """Where the numbers of one node start in every run: those of stateless operations."""

    __slots__ = ()


class Shared(StatefulArgument):
    """In place of a start: the sequence of the program, which goes on."""

    __slots__ = ()

    def generator(self) -> Source:
        """Return the program's generator."""
        return shared_generator()


SHARED: Final = Shared()


def is_source(argument: Any) -> bool:
    """Whether an argument of a row is where it draws random numbers from."""
    return isinstance(argument, Start | Shared) or hasattr(argument, "bit_generator")


def generator_in(sources: dict[Any, Source], argument: Any) -> Any:
    """What an argument of a row is in a session that has these generators: its own one, if it is a source.

    A generator of the program's, that is one with a state of its own, is copied as it is when it is first needed.
    """
    if not is_source(argument) or isinstance(argument, Fixed):
        return argument
    found = sources.get(argument)
    if found is None:
        made = copy.deepcopy(argument) if hasattr(argument, "bit_generator") else argument.generator()
        # Two threads may come at once: both get the one that was first.
        found = sources.setdefault(argument, made)
    return found


__all__ = ["SHARED", "Fixed", "Shared", "Start", "generator_in", "is_source"]
