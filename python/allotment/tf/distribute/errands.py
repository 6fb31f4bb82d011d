"""Work on several devices at once: the replicas that wait for a result help to make it."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

#: Does functions, by turns on several threads, and returns what they return.
Helpers = Callable[[Sequence[Callable[[], Any]]], list[Any]]


class _Thread(threading.local):
    helpers: Helpers | None = None


_thread: Final = _Thread()


@contextmanager
def helped_by(helpers: Helpers) -> Iterator[None]:
    """Let ``at_once`` of this thread hand out its work."""
    outer, _thread.helpers = _thread.helpers, helpers
    try:
        yield
    finally:
        _thread.helpers = outer


def at_once(functions: Sequence[Callable[[], Any]], nbytes: int) -> list[Any]:
    """Call functions, at the same time if there is somebody to help and enough to do, and return their results.

    Args:
        functions: They must not wait for each other.
        nbytes: How many bytes all of them move.

    Raises:
        BaseException: What one of them raised, the first in order.
    """
    if _thread.helpers is None or nbytes < _ENOUGH or len(functions) < 2:
        return [function() for function in functions]
    return _thread.helpers(functions)


#: Moving fewer bytes takes less time than to wake somebody.
_ENOUGH: Final = 4 << 20

__all__ = ["Helpers", "at_once", "helped_by"]
