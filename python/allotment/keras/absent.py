"""What this Keras does not have: an error that says what there is instead."""

from collections.abc import Callable, Iterable
from typing import NoReturn


class NotOfferedError(NotImplementedError, AttributeError):
    """A part of Keras that is not offered. An ``AttributeError``, so that ``hasattr`` says no."""


def absent(module: str, offered: Iterable[str]) -> Callable[[str], NoReturn]:
    """Make the ``__getattr__`` of a module: its names are the ones offered, and no others."""
    names = ", ".join(sorted(offered))

    def missing(name: str) -> NoReturn:
        # Python and its tools ask for names of their own; nobody misses those.
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise NotOfferedError(f"{module}.{name} is not offered. What is: {names}.")

    return missing


def refuse_unless_none(owner: str, **arguments: object) -> None:
    """Refuse arguments that Keras has and this has not, unless they ask for nothing.

    Raises:
        NotImplementedError: One of them asks for something.
    """
    for name, value in arguments.items():
        if value is not None and value is not False:
            raise NotImplementedError(
                f"{owner}: `{name}` is not offered, leave it out. Received: {name}={value}"
            )


__all__ = ["NotOfferedError", "absent", "refuse_unless_none"]
