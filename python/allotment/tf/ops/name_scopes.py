"""Name scopes, which name a graph's nodes; eagerly they name nothing but can be asked for their names."""

import inspect
import sys
import threading
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from allotment.tf.dispatch import thread

P = ParamSpec("P")
R = TypeVar("R")


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


def in_name_scope(default: str, last: str | None = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function with a parameter ``name`` so that a graph has its nodes in a scope of that name.

    The names are those that TensorFlow gives results, by which programs fetch them.

    Args:
        default: The name of the scope where none is given.
        last: What the function gets as its name and calls its result: ``""`` for the name of the scope itself, ``None``
            for that of its operation, or a name inside of the scope.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters
        by_keyword = parameters["name"].kind is inspect.Parameter.KEYWORD_ONLY
        place = sys.maxsize if by_keyword else list(parameters).index("name")

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            graph = thread.state.graph
            if graph is None:
                return function(*args, **kwargs)
            given: Any = args[place] if len(args) > place else kwargs.get("name")
            with graph.name_scope(given or default) as scope:
                name = scope if last == "" else last
                if len(args) > place:
                    named: Any = (*args[:place], name, *args[place + 1 :])
                    return function(*named, **kwargs)
                return function(*args, **{**kwargs, "name": name})  # type: ignore[arg-type]

        return call

    return decorate


__all__ = ["get_current_name_scope", "in_name_scope", "name_scope"]
