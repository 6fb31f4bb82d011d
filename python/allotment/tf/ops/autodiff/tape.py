"""Tapes: what a thread's operations are recorded on, to go back through them."""

import itertools
import threading
import weakref
from collections import defaultdict, deque
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from allotment.tf.dispatch import thread
from allotment.tf.ops.array.array import IDENTITY
from allotment.tf.ops.autodiff.backward import Step
from allotment.tf.ops.autodiff.differentiation import CONSTANT, is_differentiable, kept, outline
from allotment.tf.ops.table import Operation
from allotment.tf.tensors.tensor import EagerTensor, key_of


class Tape:
    """The calls that depend on what is watched, as long as anything may still depend on them.

    The tape drops a call when all tensors that it made are gone and no other call takes them: no gradient can depend on
    it. A call whose gradient needs its results keeps them, and stays until the end, as in TensorFlow.
    """

    def __init__(self, *, watches_variables: bool) -> None:
        self.watches_variables = watches_variables
        #: The keys of tensors and variables that can have gradients; for results, with the number of their call.
        self.tracked: dict[Hashable, int | None] = {}
        #: The variables that are watched, by what they are known by.
        self.variables: dict[Hashable, Any] = {}
        self._numbers = itertools.count()
        #: The calls by number, and what tells of the end of the tensors that they made.
        self._steps: dict[int, tuple[Step, list[weakref.ref[Any]]]] = {}
        #: How many calls take a tensor.
        self._uses: defaultdict[Hashable, int] = defaultdict(int)
        #: Numbers of calls of which a tensor has gone. Tensors end at any moment, in any thread: they are only noted.
        self._late: deque[int] = deque()

    def watch(self, value: Any) -> None:
        """Record what depends on a tensor or a variable from now on."""
        self.tracked.setdefault(source_key(value))
        if hasattr(value, "_source"):
            self.variables.setdefault(value._source, value)

    def add(self, step: Step, outputs: Sequence[Any], *, replaces: bool = False) -> None:
        """Record a call if it depends on what is watched; it may replace the calls that made the same tensors."""
        self._forget()
        if not any(key in self.tracked for key in step.input_keys):
            return
        if replaces:
            for key in step.output_keys:
                self._drop(self.tracked.get(key))
        number = next(self._numbers)
        self.tracked.update(dict.fromkeys(step.output_keys, number))
        for key in step.input_keys:
            self._uses[key] += 1
        gone = partial(_note, self._late, number)
        self._steps[number] = (step, [weakref.ref(each, gone) for each in outputs])

    def steps(self) -> list[Step]:
        """The calls, in the order in which they were made."""
        self._forget()
        return [step for step, _ in self._steps.values()]

    def clear(self) -> None:
        """Forget all calls."""
        self._steps.clear()

    def _forget(self) -> None:
        """Drop calls on which nothing can depend any more, and the calls that only those used."""
        while self._late:
            number = self._late.popleft()
            if number in self._steps and not self._is_of_use(*self._steps[number]):
                self._drop(number)

    def _drop(self, number: int | None) -> None:
        """Drop a call, and note those that made its inputs: they may be of no use, too."""
        if number is None:
            return
        step, _ = self._steps.pop(number)
        for key in step.output_keys:
            self.tracked.pop(key, None)
        for key in step.input_keys:
            self._uses[key] -= 1
            made_by = self.tracked.get(key)
            if made_by is not None:
                self._late.append(made_by)

    def _is_of_use(self, step: Step, outputs: Sequence["weakref.ref[Any]"]) -> bool:
        used = any(self._uses.get(key) for key in step.output_keys)
        return used or any(each() is not None for each in outputs)


def _note(late: deque[int], number: int, _: Any) -> None:
    late.append(number)


class Recorder:
    """The tapes of a thread that are recording, the innermost last."""

    def __init__(self) -> None:
        self.tapes: list[Tape] = []

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
        """Record a call of an operation on each tape that watches one of its inputs.

        With ``replaces``, such a tape forgets the calls that made the same tensors.
        """
        gradient = row.gradient
        if gradient is CONSTANT:
            return
        wanted = [self._is_watched(each) for each in inputs]
        if not any(wanted):
            return
        outputs = made if type(made) is tuple else (made,)
        self._add(
            Step(
                row,
                kept(inputs, gradient is None or gradient.inputs, wanted),
                kept(outputs, gradient is None or gradient.outputs, ()),
                args,
                kwargs,
                [_known_by(each) for each in inputs],
                [_known_by(each) for each in outputs],
            ),
            outputs,
            replaces=replaces,
        )

    def read(self, variable: Any, value: Any) -> None:
        """Record that a variable was read."""
        if not is_differentiable(value._dtype):
            return
        for tape in self.tapes:
            if tape.watches_variables and variable.trainable:
                tape.watch(variable)
        outlines = [outline(value) if isinstance(value, EagerTensor) else value]
        step = Step(IDENTITY, outlines, outlines, (), {}, [variable._source], [key_of(value)])
        self._add(step, [value])

    def _is_watched(self, tensor: Any) -> bool:
        # Tapes give keys to tensors: a tensor without a key is on no tape.
        key = getattr(tensor, "_key", None)
        return (
            key is not None
            and is_differentiable(tensor._dtype)
            and any(key in tape.tracked for tape in self.tapes)
        )

    def _add(self, step: Step, outputs: Sequence[Any], *, replaces: bool = False) -> None:
        for tape in self.tapes:
            tape.add(step, outputs, replaces=replaces)


def _known_by(tensor: Any) -> Hashable:
    """The key of a tensor; of one that has no gradient a key that nothing else has."""
    return key_of(tensor) if is_differentiable(tensor._dtype) else object()


def source_key(value: Any) -> Hashable:
    """Return the key of a tensor or a variable among the sources of gradients."""
    source: Hashable | None = getattr(value, "_source", None)
    return key_of(value) if source is None else source


class _Recorders(threading.local):
    def __init__(self) -> None:
        self.own = Recorder()


_recorders: Final = _Recorders()


def push(tape: Tape) -> None:
    """Record this thread's operations on a tape."""
    recorder = _recorders.own
    recorder.tapes.append(tape)
    thread.state.set_recorder(recorder)


def pop(tape: Tape) -> None:
    """Stop recording on a tape.

    Raises:
        ValueError: It was entered in another thread.
    """
    recorder = _recorders.own
    if tape not in recorder.tapes:
        raise ValueError("Tape is not recording in this thread. Leave it where it was entered.")
    recorder.tapes.remove(tape)
    if not recorder.tapes:
        thread.state.set_recorder(None)


@contextmanager
def paused() -> Iterator[None]:
    """Stop all current tapes from recording the operations of a ``with`` block; ``variables_read`` goes on."""
    recorder = _recorders.own
    outer = recorder.tapes
    recorder.tapes = [each for each in outer if isinstance(each, _Watcher)]
    thread.state.set_recorder(recorder if recorder.tapes else None)
    try:
        yield
    finally:
        recorder.tapes = outer
        thread.state.set_recorder(recorder if outer else None)


class _Watcher(Tape):
    """Notes which variables are watched, and no calls."""

    def add(self, step: Step, outputs: Sequence[Any], *, replaces: bool = False) -> None:
        """Record nothing."""


@contextmanager
def variables_read() -> Iterator[Collection[Any]]:
    """Collect the trainable variables that are read in a ``with`` block."""
    watcher = _Watcher(watches_variables=True)
    push(watcher)
    try:
        yield watcher.variables.values()
    finally:
        pop(watcher)


__all__ = ["Recorder", "Tape", "paused", "pop", "push", "source_key", "variables_read"]
