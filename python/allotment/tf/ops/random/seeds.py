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

Threads that draw at the same time, as replicas do, have sequences of their own: which one is first must not matter.
Processes that divide batches among them have one in common for what makes those batches.
"""

import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.arguments.integers import attribute_argument, number_argument
from allotment.tf.ops.random.draws import Source


class _Stream(threading.local):
    """The sequences of a thread that has its own; the program's have the number -1."""

    index = -1
    step = 0
    #: The one that its operations without a seed share, once it is needed.
    shared: Source | None = None
    #: One that it has in common with other processes, while it makes what all of them go through.
    common: Source | None = None


_stream: Final = _Stream()


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
            #: How often each operation with a seed was called, in the program and in each stream.
            self._calls: dict[tuple[str, int, int], int] = {}
            #: How many times threads were given streams.
            self._steps = 0

    def next_step(self) -> int:
        """A number for streams of threads that start together."""
        with self._lock:
            self._steps += 1
            return self._steps

    def generator(self, op: str, seed: int | None) -> Source:
        """Return the generator of an operation's random numbers. Generators have locks of their own."""
        with self._lock:
            program, stream = self._seed, _stream.index
            if seed is None and _stream.common is not None and stream < 0:
                return _stream.common
            if seed is None:
                return self._shared_by_all(program) if stream < 0 else _shared_by_thread(program)
            call = self._calls.get((op, seed, stream), 0)
            self._calls[op, seed, stream] = call + 1
        words = ("operation", op, seed, call) if program is None else ("both", program, op, seed, call)
        own = () if stream < 0 else ("stream", stream)
        return started(*words, *own)

    def _shared_by_all(self, program: int | None) -> Source:
        if self._shared is None:
            self._shared = np.random.default_rng(None if program is None else _entropy("program", program))
        return self._shared

    def again(self, op: str, seed: int) -> Source:
        """Return the generator of an operation with a seed that starts again at each call."""
        with self._lock:
            program = self._seed
        words = ("operation", op, seed) if program is None else ("both", program, op, seed)
        return started(*words)


def _shared_by_thread(program: int | None) -> Source:
    if _stream.shared is None:
        words = None if program is None else _entropy("program", program, _stream.step, _stream.index)
        _stream.shared = np.random.default_rng(words)
    return _stream.shared


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
    number = None if seed is None else attribute_argument(seed, "seed")
    graph = thread.state.graph
    if graph is not None:
        graph.seed = number
    else:
        _seeds.set(number)


def generator(op: str, seed: Any) -> Source:
    """Return the generator of an operation's random numbers; in a graph, their start.

    Raises:
        TypeError: The operation's seed is no whole number.
    """
    number = None if seed is None else attribute_argument(seed, "seed")
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


def next_step() -> int:
    """A number for ``stream``, the same for threads that start together."""
    return _seeds.next_step()


@contextmanager
def stream(step: int, index: int) -> Iterator[None]:
    """Draw in a ``with`` block from sequences of this thread, which two numbers and the seeds decide."""
    outer = _stream.step, _stream.index, _stream.shared
    _stream.step, _stream.index, _stream.shared = step, index, None
    try:
        yield
    finally:
        _stream.step, _stream.index, _stream.shared = outer


def common_source() -> Source | None:
    """Return the generator that all processes share, while this thread makes elements that all of them go through."""
    return _stream.common


class InCommon(Iterator[Any]):
    """An iterator over elements; random numbers without a seed that they are made of come from a shared source."""

    def __init__(self, source: Source, start: Callable[[], Iterator[Any]]) -> None:
        self._source, self._start = source, start
        self._elements: Iterator[Any] | None = None

    def __next__(self) -> Any:
        outer, _stream.common = _stream.common, self._source
        try:
            if self._elements is None:
                self._elements = self._start()
            return next(self._elements)
        finally:
            _stream.common = outer


def dataset_generator(op: str, seed: Any) -> Source:
    """Return the generator of a data set's random numbers; with a seed, each such data set has equal numbers.

    Raises:
        TypeError: The data set's seed is no whole number.
    """
    if seed is None:
        return np.random.default_rng(int(generator(op, None).integers(2**63)))
    return _seeds.again(op, number_argument(seed, "seed"))


def generator_of(*numbers: int) -> Source:
    """A generator that is the same for the same numbers."""
    return started("stateless", *numbers)


__all__ = [
    "InCommon",
    "common_source",
    "dataset_generator",
    "generator",
    "generator_of",
    "next_step",
    "set_seed",
    "shared_generator",
    "started",
    "stream",
]
