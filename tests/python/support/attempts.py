"""Calls whose outcome is looked at, whatever it is, on this thread or on others."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

#: No call here takes longer, unless it hangs.
DEADLINE_SECONDS = 30


@dataclass
class Outcome:
    """What a call returned, or raised."""

    value: Any = None
    error: BaseException | None = None


def attempt(call: Callable[[], Any], *, elsewhere: bool = False) -> Outcome:
    """Make a call, in a thread of its own if `elsewhere`; nothing that comes back refers to its frames."""
    if elsewhere:
        return at_once([call])[0]
    try:
        return Outcome(call())
    except (Exception, SystemExit) as error:
        return Outcome(error=without_frames(error))


def at_once(calls: Sequence[Callable[[], Any]]) -> list[Outcome]:
    """Make every call in a thread of its own, all at the same moment."""
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
    """Drop the frames of an exception and of its causes: they keep objects alive."""
    links: list[BaseException | None] = [error]
    while links:
        link = links.pop()
        if link is not None:
            link.__traceback__ = None
            links += [link.__cause__, link.__context__]
    return error
