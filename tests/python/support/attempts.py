"""Runs calls on this thread or on others and captures their results or exceptions."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

#: Time limit of a call; a longer one hangs.
DEADLINE_SECONDS = 30


@dataclass
class Outcome:
    """The value that a call returned, or the exception that it raised."""

    value: Any = None
    error: BaseException | None = None


def attempt(call: Callable[[], Any], *, elsewhere: bool = False) -> Outcome:
    """Make a call and capture its outcome, without references to its frames.

    Args:
        call: The function to call.
        elsewhere: Whether to call it in another thread.
    """
    if elsewhere:
        return run_together([call])[0]
    try:
        return Outcome(call())
    except (Exception, SystemExit) as error:
        return Outcome(error=without_frames(error))


def run_together(calls: Sequence[Callable[[], Any]]) -> list[Outcome]:
    """Make every call in a thread of its own, all starting at the same moment, and capture the outcomes."""
    outcomes = [Outcome() for _ in calls]
    start = threading.Barrier(len(calls))

    def make(index: int, call: Callable[[], Any]) -> None:
        start.wait(DEADLINE_SECONDS)
        outcomes[index] = attempt(call)

    threads = [
        threading.Thread(target=make, args=(index, call), daemon=True) for index, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return outcomes


def without_frames(error: BaseException) -> BaseException:
    """Remove the tracebacks of an exception and of its causes, because frames keep objects alive."""
    links: list[BaseException | None] = [error]
    while links:
        link = links.pop()
        if link is not None:
            link.__traceback__ = None
            links += [link.__cause__, link.__context__]
    return error
