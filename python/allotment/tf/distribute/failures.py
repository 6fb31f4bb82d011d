"""The words for steps that do not end well: who failed, where, and what became of the other replicas."""

import itertools
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from allotment import errors
from allotment.devices.caller import is_ours

if TYPE_CHECKING:
    from allotment.tf.distribute.step import Replica

#: TensorFlow's words, in front of ours.
_DIFFERENT_NUMBER: Final = "Some replicas made a different number of replica_context().merge_call() calls."


#: How many lines of the program tell where a replica is.
_LINES: Final = 3


class _Note(str):
    """What is said of a step in an error, and can be told from what others say."""

    __slots__ = ()


def hung(title: str, replicas: "Sequence[Replica]", deadline: float) -> errors.DeadlineExceededError:
    """The error of replicas that are not heard of."""
    lost = [replica for replica in replicas if replica.is_running]
    told = [f"{_named(replica)} is {_place(replica)}" for replica in lost]
    others = [f"{_named(replica)} {_state(replica)}" for replica in replicas if not replica.is_running]
    return errors.DeadlineExceededError(
        None,
        None,
        f"{title}: no replica was heard of for {deadline:g} s. {'; '.join(told)}. "
        f"{'; '.join(others) + '. ' if others else ''}"
        "Replicas that may need longer get it by ALLOTMENT_REPLICA_DEADLINE or "
        "strategy.extended.replica_deadline, both in seconds.",
    )


def disagreeing(replicas: "Sequence[Replica]") -> RuntimeError:
    """The error of replicas that do not meet for the same."""
    told = "; ".join(f"{_named(replica)} {_state(replica)}" for replica in replicas)
    if any(replica.ended for replica in replicas):
        return RuntimeError(f"{_DIFFERENT_NUMBER} {told}. Every replica has to make the same calls.")
    return RuntimeError(
        f"Replicas wait for each other in different calls: {told}. Every replica has to make the same calls, in "
        "the same order."
    )


def places(replicas: "Sequence[Replica]") -> list[str]:
    """Where each replica is, as long as it is there."""
    return [_state(replica) for replica in replicas]


def add_note(
    error: BaseException,
    title: str,
    replicas: "Sequence[Replica]",
    told: list[str],
    stopped: type[BaseException],
) -> None:
    """Say in a note which replica an error is of, and what became of each other one."""
    first = f"{title}: raised for all replicas, not by one of them"
    lines: list[str] = []
    for replica, place in zip(replicas, told, strict=True):
        own = replica.error
        if own is error:
            first = f"{title}: raised by {_named(replica)}"
        elif not replica.ended:
            lines.append(f"{_named(replica)} {place}; it did not stop, and is left to itself")
        elif own is None:
            lines.append(f"{_named(replica)} had returned")
        elif isinstance(own, stopped):
            lines.append(f"{_named(replica)} {place}; it was stopped")
        else:
            lines.append(f"{_named(replica)} raised {type(own).__name__}: {_first_line(own)}")
    # The same error may have been raised in an earlier step: what became of the replicas then is over.
    if hasattr(error, "__notes__"):
        error.__notes__ = [each for each in error.__notes__ if not isinstance(each, _Note)]
    error.add_note(_Note("\n  ".join([first, *lines])))


def _named(replica: "Replica") -> str:
    return f"replica {replica.index} on {replica.device}"


def _state(replica: "Replica") -> str:
    if replica.ended:
        return "had returned" if replica.error is None else "had raised"
    if replica.meeting is None:
        return f"was {_place(replica)}"
    return f"waited in {replica.meeting.what}, {_place(replica)}"


def _place(replica: "Replica") -> str:
    """The innermost lines that a replica is in of the function that it runs."""
    frame: FrameType | None = sys._current_frames().get(replica.worker.ident)
    stack = [
        (each, number, is_ours(each.f_globals.get("__name__")))
        for each, number in traceback.walk_stack(frame)
    ]
    # From the outside: what starts a thread, what is ours, the program, and what is ours again.
    inner = itertools.dropwhile(lambda entry: not entry[2], reversed(stack))
    program = itertools.takewhile(
        lambda entry: not entry[2], itertools.dropwhile(lambda entry: entry[2], inner)
    )
    lines = [
        f"{each.f_code.co_name} in {each.f_code.co_filename}, line {number}" for each, number, _ in program
    ]
    if lines:
        return "at " + ", called by ".join(lines[: -_LINES - 1 : -1])
    # A step of Keras is all ours: the program's line is where that was called.
    ours = [each for each, _, is_own in stack if is_own]
    return (
        f"in {ours[0].f_code.co_qualname} of {ours[0].f_globals['__name__']}"
        if ours
        else "in no line of Python"
    )


def _first_line(error: Any) -> str:
    return str(error).partition("\n")[0]


__all__ = ["add_note", "disagreeing", "hung", "places"]
