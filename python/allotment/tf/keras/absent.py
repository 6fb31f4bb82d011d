"""Arguments of Keras that are not offered, and the look-up of objects by name."""

from collections.abc import Iterable, Mapping
from typing import Any


def not_interpreted(what: str, identifier: object, offered: Iterable[str]) -> ValueError:
    """Make the error of an unknown name."""
    return ValueError(
        f"Could not interpret {what} identifier: {identifier}. Available: {', '.join(sorted(offered))}."
    )


def look_up(
    what: str, identifier: Any, by_name: Mapping[str, Any], kind: type | None = None, offered: Any = None
) -> Any:
    """Return the object of a name; other callable objects are returned as they are.

    Args:
        what: The kind of object, for the error.
        identifier: A name, a class, or an object.
        by_name: Objects by name; a class is called without arguments.
        kind: A class whose subclasses are called, too.
        offered: The names to list in the error, all unless given.

    Raises:
        ValueError: The name is unknown, or the object is not callable.
    """
    found = by_name.get(identifier) if isinstance(identifier, str) else identifier
    if isinstance(found, type) and (isinstance(identifier, str) or (kind and issubclass(found, kind))):
        return found()
    if callable(found):
        return found
    raise not_interpreted(what, identifier, offered or by_name)


def refuse_unless_none(owner: str, **arguments: object) -> None:
    """Refuse arguments of Keras that are not offered, unless they are ``None`` or ``False``.

    Raises:
        NotImplementedError: One of them has another value.
    """
    for name, value in arguments.items():
        if value is not None and value is not False:
            raise NotImplementedError(
                f"{owner}: `{name}` is not offered, leave it out. Received: {name}={value}"
            )


__all__ = ["look_up", "not_interpreted", "refuse_unless_none"]
