"""Name scopes, which name a graph's nodes; eagerly they name nothing but can be asked for their names."""

import threading
from types import TracebackType
from typing import Any

from allotment.tf.dispatch import thread


class _Names(threading.local):
    """The scopes that a thread is in."""

    def __init__(self) -> None:
        self.stack: list[str] = []


_names = _Names()


class name_scope:  # noqa: N801 - the name TensorFlow has
    """A prefix for names. As ``tf.name_scope``; eagerly there are none to name, and it only knows itself.

    Raises:
        ValueError: The name is no text.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        self._name = name
        #: The scopes of graphs that were entered through this one.
        self._scopes: list[Any] = []

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    def __enter__(self) -> str:
        graph = thread.state.graph
        if graph is not None:
            scope = graph.name_scope(self._name)
            entered: str = scope.__enter__()
            self._scopes.append(scope)
            return entered
        outer = _names.stack[-1] if _names.stack else ""
        # A name with a slash at the end is one from the root.
        inner = self._name if self._name.endswith("/") else f"{outer}{self._name}/" if self._name else ""
        _names.stack.append(inner)
        return inner

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._scopes:
            self._scopes.pop().__exit__(kind, error, traceback)
            return
        _names.stack.pop()


def get_current_name_scope() -> Any:
    """Return the name of the scope without its last slash. As ``tf.get_current_name_scope``."""
    graph = thread.state.graph
    if graph is not None:
        return graph._names.scope
    return _names.stack[-1].removesuffix("/") if _names.stack else ""


__all__ = ["get_current_name_scope", "name_scope"]
