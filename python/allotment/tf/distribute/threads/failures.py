"""Errors and notes of steps that fail: the replica that failed, its source line, the state of the others."""

import itertools
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import Final

from allotment import errors
from allotment.devices.messages.call_site import is_ours
from allotment.tf.distribute.threads.replica import Replica, ReplicaStopped

#: The beginning of a message, as in TensorFlow.
_DIFFERENT_NUMBER: Final = "Some replicas made a different number of replica_context().merge_call() calls."

#: The number of source lines of the program that describe where a replica is.
_LINES: Final = 3


class _Note(str):
    """A note of a step, which can be described from notes that the program adds."""

    __slots__ = ()


def deadline_error(title: str, replicas: Sequence[Replica], deadline: float) -> errors.DeadlineExceededError:
    """Make the error of replicas that sent no event before the deadline."""
    lost = [replica for replica in replicas if replica.is_running]
    described = [f"{_named(replica)} is {_place(replica)}" for replica in lost]
    others = [f"{_named(replica)} {_state(replica)}" for replica in replicas if not replica.is_running]
    return errors.DeadlineExceededError(
        None,
        None,
        f"{title}: no replica sent news for {deadline:g} s. {'; '.join(described)}. "
        f"{'; '.join(others) + '. ' if others else ''}"
        "Set a longer deadline with ALLOTMENT_REPLICA_DEADLINE or "
        "strategy.extended.replica_deadline, both in seconds.",
    )


def mismatch_error(replicas: Sequence[Replica]) -> RuntimeError:
    """Make the error of replicas that make different collective calls."""
    described = "; ".join(f"{_named(replica)} {_state(replica)}" for replica in replicas)
    if any(replica.ended for replica in replicas):
        return RuntimeError(f"{_DIFFERENT_NUMBER} {described}. Every replica has to make the same calls.")
    return RuntimeError(
        f"Replicas wait for each other in different calls: {described}. Every replica has to make the same calls, in "
        "the same order."
    )


def describe_states(replicas: Sequence[Replica]) -> list[str]:
    """Describe the state of each replica. Its source line can be found only while its thread runs."""
    return [_state(replica) for replica in replicas]


def add_note(error: BaseException, title: str, replicas: Sequence[Replica], states: Sequence[str]) -> None:
    """Add a note to an error: the replica that raised it, and the state of each other one."""
    first = f"{title}: raised for all replicas, not by one of them"
    lines: list[str] = []
    for replica, state in zip(replicas, states, strict=True):
        own = replica.error
        if own is error:
            first = f"{title}: raised by {_named(replica)}"
        elif not replica.ended:
            lines.append(f"{_named(replica)} {state}; it did not stop, and its thread goes on")
        elif own is None:
            lines.append(f"{_named(replica)} had returned")
        elif isinstance(own, ReplicaStopped):
            lines.append(f"{_named(replica)} {state}; it was stopped")
        else:
            lines.append(f"{_named(replica)} raised {type(own).__name__}: {_first_line(own)}")
    # The same error may have been raised in an earlier step, whose note is out of date.
    if hasattr(error, "__notes__"):
        error.__notes__ = [each for each in error.__notes__ if not isinstance(each, _Note)]
    error.add_note(_Note("\n  ".join([first, *lines])))


def _named(replica: Replica) -> str:
    return f"replica {replica.index} on {replica.device}"


def _state(replica: Replica) -> str:
    if replica.ended:
        return "had returned" if replica.error is None else "had raised"
    if replica.call is None:
        return f"was {_place(replica)}"
    return f"waited in {replica.call.description}, {_place(replica)}"


def _place(replica: Replica) -> str:
    """Describe the innermost source lines of the program that a replica runs."""
    frame: FrameType | None = sys._current_frames().get(replica.worker.ident)
    stack = [
        (each, number, is_ours(each.f_globals.get("__name__")))
        for each, number in traceback.walk_stack(frame)
    ]
    # From the outside: frames that start a thread, frames of this package, of the program, of this package again.
    inner = itertools.dropwhile(lambda entry: not entry[2], reversed(stack))
    program = itertools.takewhile(
        lambda entry: not entry[2], itertools.dropwhile(lambda entry: entry[2], inner)
    )
    lines = [
        f"{each.f_code.co_name} in {each.f_code.co_filename}, line {number}" for each, number, _ in program
    ]
    if lines:
        return "at " + ", called by ".join(lines[: -_LINES - 1 : -1])
    # A step of Keras has frames of this package only: the program called it on another thread.
    ours = [each for each, _, is_own in stack if is_own]
    return (
        f"in {ours[0].f_code.co_qualname} of {ours[0].f_globals['__name__']}"
        if ours
        else "in no line of Python"
    )


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


__all__ = ["add_note", "deadline_error", "describe_states", "mismatch_error"]
