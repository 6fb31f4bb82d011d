"""What this Keras does not have: an error that says what there is instead."""

import inspect
from collections.abc import Callable, Iterable
from typing import NoReturn, TypeVar

from allotment.tf.names.missing_names import NotOfferedError

_Class = TypeVar("_Class")


class Absent:
    """A method of a class of Keras that is not offered."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        names = ", ".join(
            name
            for name in dir(owner)
            if not name.startswith("_") and not isinstance(inspect.getattr_static(owner, name), Absent)
        )
        raise NotOfferedError(f"{owner.__name__}.{self._name} is not offered. Available: {names}.")


def lacks(*names: str) -> Callable[[type[_Class]], type[_Class]]:
    """Let a class say of these methods of Keras that they are not offered. One of the program's own may have them."""

    def mark(owner: type[_Class]) -> type[_Class]:
        for name in names:
            setattr(owner, name, Absent(name))
        return owner

    return mark


def not_interpreted(what: str, identifier: object, offered: Iterable[str]) -> ValueError:
    """Make the error that nothing is called so."""
    return ValueError(
        f"Could not interpret {what} identifier: {identifier}. Available: {', '.join(sorted(offered))}."
    )


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


__all__ = ["Absent", "lacks", "not_interpreted", "refuse_unless_none"]
