"""Name scopes, which name nothing eagerly but can be asked for their names."""

import threading
from types import TracebackType
from typing import Any


class _Names(threading.local):
    """The scopes that a thread is in."""

    def __init__(self) -> None:
        self.stack: list[str] = []


_names = _Names()


class name_scope:  # noqa: N801 - the name TensorFlow has
    """A prefix for names. As ``tf.name_scope``; eagerly there are none, and it only knows itself.

    Raises:
        ValueError: The name is no text.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        self._name = name

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    def __enter__(self) -> str:
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
        _names.stack.pop()


def get_current_name_scope() -> Any:
    """Return the name of the scope without its last slash. As ``tf.get_current_name_scope``."""
    return _names.stack[-1].removesuffix("/") if _names.stack else ""


__all__ = ["get_current_name_scope", "name_scope"]
