"""Where random numbers come from: a seed for the program, and one for an operation if it is given one.

As in TensorFlow, what the two seeds say decides the numbers:

    program   operation   numbers
    -------   ---------   --------------------------------------------------------
    none      none        different in every process
    set       none        one sequence that all operations without a seed share
    none      set         a sequence for the operation and its seed
    set       set         a sequence for the operation, its seed and the program's

Each call goes on in its sequence; setting the program's seed starts all of them again. The numbers are NumPy's,
not those that TensorFlow gives for the same seeds. While a graph is the default, seeds are those of its nodes.
"""

import threading
import zlib
from typing import Any, Final

import numpy as np

from allotment.devices.placement import thread
from allotment.ops.arguments import number_argument
from allotment.ops.draws import Source


class _Seeds:
    """The sequences of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.set(None)

    def set(self, seed: int | None) -> None:
        """Set the program's seed and start every sequence."""
        with self._lock:
            self._seed = seed
            #: The one that operations without a seed share, once it is needed.
            self._shared: Source | None = None
            #: How often each operation with a seed was called.
            self._calls: dict[tuple[str, int], int] = {}

    def generator(self, op: str, seed: int | None) -> Source:
        """What an operation draws its numbers from. Generators lock themselves while they are drawn from."""
        with self._lock:
            if seed is None:
                if self._shared is None:
                    entropy = None if self._seed is None else _entropy("program", self._seed)
                    self._shared = np.random.default_rng(entropy)
                return self._shared
            call = self._calls.get((op, seed), 0)
            self._calls[op, seed] = call + 1
            program = self._seed
        words = ("operation", op, seed, call) if program is None else ("both", program, op, seed, call)
        return started(*words)


def _entropy(*words: str | int) -> list[int]:
    """Numbers for a generator, others for other words."""
    return [zlib.crc32(word.encode()) if isinstance(word, str) else word % 2**64 for word in words]


_seeds: Final = _Seeds()


def set_seed(seed: Any) -> None:
    """Set the program's seed and start every sequence of random numbers again. As ``tf.random.set_seed``.

    ``None`` makes the numbers different in every process again. They are not TensorFlow's for the same seed.
    While a graph is the default, it is the seed of the nodes that are made from then on.

    Raises:
        TypeError: No whole number.
    """
    number = None if seed is None else number_argument(seed, "seed")
    graph = thread.state.graph
    if graph is not None:
        graph.seed = number
    else:
        _seeds.set(number)


def generator(op: str, seed: Any) -> Source:
    """What an operation draws its numbers from; in a graph, where they start.

    Raises:
        TypeError: The operation's seed is no whole number.
    """
    number = None if seed is None else number_argument(seed, "seed")
    graph = thread.state.graph
    if graph is not None:
        return graph._recording.source(op, number)  # type: ignore[no-any-return]
    return _seeds.generator(op, number)


def shared_generator() -> Source:
    """The generator that operations without a seed share."""
    return _seeds.generator("", None)


def started(*words: str | int) -> Source:
    """A generator that is the same for the same words."""
    return np.random.default_rng(_entropy(*words))


def generator_of(*numbers: int) -> Source:
    """A generator that is the same for the same numbers."""
    return started("stateless", *numbers)


__all__ = ["generator", "generator_of", "set_seed", "shared_generator", "started"]
