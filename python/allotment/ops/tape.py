"""Tapes: what a thread's operations are recorded on, to go back through them."""

import threading
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Final

from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.placement import device, record_with
from allotment.ops.backward import Step
from allotment.ops.differentiation import CONSTANT, is_differentiable, kept, outline
from allotment.ops.table import OPERATIONS, Operation
from allotment.tensor import EagerTensor, key_of

#: Reading a variable gives its value as it is.
_READ: Final = OPERATIONS["Identity"]


class Tape:
    """The calls that depend on what is watched."""

    def __init__(self, *, watches_variables: bool) -> None:
        self.watches_variables = watches_variables
        self.steps: list[Step] = []
        #: What tensors and variables are known by that gradients can be asked of.
        self.tracked: set[Hashable] = set()
        #: The variables that are watched, by what they are known by.
        self.variables: dict[Hashable, Any] = {}

    def watch(self, value: Any) -> None:
        """Record what depends on a tensor or a variable from now on."""
        self.tracked.add(source_key(value))
        if hasattr(value, "_source"):
            self.variables.setdefault(value._source, value)

    def add(self, step: Step) -> None:
        """Record a call if it depends on what is watched."""
        if any(key in self.tracked for key in step.input_keys):
            self.tracked.update(step.output_keys)
            self.steps.append(step)


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
        where: Device | None,
    ) -> None:
        """Record a call of an operation on each tape that watches one of its inputs."""
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
                inputs if gradient is None else kept(inputs, gradient.inputs, wanted),
                outputs if gradient is None else kept(outputs, gradient.outputs, ()),
                args,
                kwargs,
                [_known_by(each) for each in inputs],
                [_known_by(each) for each in outputs],
                nullcontext if where is None else partial(device, where.name),
            )
        )

    def read(self, variable: Any, value: Any) -> None:
        """Record that a variable was read."""
        if not is_differentiable(value._dtype):
            return
        for tape in self.tapes:
            if tape.watches_variables and variable.trainable:
                tape.watch(variable)
        eager = isinstance(value, EagerTensor)
        outlines = [outline(value) if eager else value]
        scope = partial(device, value.device) if eager else nullcontext
        self._add(Step(_READ, outlines, outlines, (), {}, [variable._source], [key_of(value)], scope))

    def _is_watched(self, tensor: Any) -> bool:
        # A tensor that nobody has asked for a key is on no tape.
        key = getattr(tensor, "_key", None)
        return (
            key is not None
            and is_differentiable(tensor._dtype)
            and any(key in tape.tracked for tape in self.tapes)
        )

    def _add(self, step: Step) -> None:
        for tape in self.tapes:
            tape.add(step)


def _known_by(tensor: Any) -> Hashable:
    """The key of a tensor; of one that has no gradient a key that nothing else has."""
    return key_of(tensor) if is_differentiable(tensor._dtype) else object()


def source_key(value: Any) -> Hashable:
    """What a tensor or a variable is known by."""
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
    record_with(recorder)


def pop(tape: Tape) -> None:
    """Stop recording on a tape."""
    recorder = _recorders.own
    recorder.tapes.remove(tape)
    if not recorder.tapes:
        record_with(None)


@contextmanager
def paused() -> Iterator[None]:
    """Let none of the tapes of this moment record the operations of a ``with`` block."""
    recorder = _recorders.own
    outer, recorder.tapes = recorder.tapes, []
    record_with(None)
    try:
        yield
    finally:
        recorder.tapes = outer
        record_with(recorder if outer else None)


class _Watcher(Tape):
    """Notes which variables are watched, and no calls."""

    def add(self, step: Step) -> None:
        """Record nothing."""


@contextmanager
def variables_read() -> Iterator[Collection[Any]]:
    """Tell which trainable variables a ``with`` block has read."""
    watcher = _Watcher(watches_variables=True)
    push(watcher)
    try:
        yield watcher.variables.values()
    finally:
        pop(watcher)


__all__ = ["Recorder", "Tape", "paused", "pop", "push", "source_key", "variables_read"]
