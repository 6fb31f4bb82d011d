"""The default session of each thread, and the choice of the session that computes a tensor or runs an operation."""

import threading
from typing import Any, Final, Protocol


class Runner(Protocol):
    """A session, as far as operations and tensors use it."""

    @property
    def graph(self) -> object:
        """The graph that it runs."""

    def run(self, fetches: Any, feed_dict: Any = None) -> Any:
        """Run what fetches need and return their values."""


class Element(Protocol):
    """An operation or a tensor of a graph."""

    @property
    def graph(self) -> object:
        """The graph it belongs to."""


class _Sessions(threading.local):
    """The default sessions of a thread, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[Runner] = []


_sessions: Final = _Sessions()


def default_sessions() -> list[Runner]:
    """Return the stack of this thread's default sessions, the innermost last. Sessions add and remove themselves."""
    return _sessions.stack


def session_for(element: Element, session: Runner | None, what: str, instead: str) -> Runner:
    """Return the session that computes an element of a graph: the given one or the default one.

    Args:
        element: An operation or a tensor.
        session: The session that the caller gave, if any.
        what: The attempted action, for error texts: ``"evaluate tensor using `eval()`"``.
        instead: The call with an explicit session, for error texts.

    Raises:
        ValueError: There is no default session, or its graph is another one.
    """
    if session is not None:
        if session.graph is not element.graph:
            raise ValueError(f"Cannot {what}: {element!r} is not an element of the session's graph.")
        return session
    if not _sessions.stack:
        raise ValueError(
            f"Cannot {what}: No default session is registered. Use `with sess.as_default()` or pass an explicit "
            f"session, as in `{instead}`."
        )
    session = _sessions.stack[-1]
    if session.graph is not element.graph:
        raise ValueError(
            f"Cannot use the default session to {what}: the element's graph is different from the "
            "session's graph. Pass an explicit session."
        )
    return session


__all__ = ["Runner", "default_sessions", "session_for"]
