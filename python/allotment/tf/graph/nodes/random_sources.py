"""Sources of the random numbers of nodes. A node knows the start of its sequence; each session has the generators.

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
    """The start of the sequence of one node."""

    __slots__ = ("words",)

    def __init__(self, *words: str | int) -> None:
        self.words = words

    def generator(self) -> Source:
        """Make a generator that starts here."""
        return started(*self.words)


class Fixed(Start):
    """The start of the sequence of a stateless operation, which is the same in every run."""

    __slots__ = ()


class Shared(StatefulArgument):
    """The sequence of the program, which all nodes without a start share."""

    __slots__ = ()

    def generator(self) -> Source:
        """Return the program's generator."""
        return shared_generator()


SHARED: Final = Shared()


def is_source(argument: Any) -> bool:
    """Whether an argument of a row is a source of random numbers."""
    return isinstance(argument, Start | Shared) or hasattr(argument, "bit_generator")


def generator_in(sources: dict[Any, Source], argument: Any) -> Any:
    """Return an argument of a row as a session with these generators has it: it replaces sources with its own.

    A generator of the program is copied in the state in which the session first needs it.
    """
    if not is_source(argument) or isinstance(argument, Fixed):
        return argument
    found = sources.get(argument)
    if found is None:
        made = copy.deepcopy(argument) if hasattr(argument, "bit_generator") else argument.generator()
        # Two threads may get here at once: both use the generator of the first.
        found = sources.setdefault(argument, made)
    return found


__all__ = ["SHARED", "Fixed", "Shared", "Start", "generator_in", "is_source"]
