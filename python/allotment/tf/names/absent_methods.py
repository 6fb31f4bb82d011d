"""Methods of TensorFlow's classes that are not offered: using one is an error that lists the others."""

import inspect
from collections.abc import Callable
from typing import NoReturn, TypeVar

from allotment.tf.names.missing_names import NotOfferedError

_Class = TypeVar("_Class")


class Absent:
    """A method of a class that is not offered.

    Args:
        owner: The class that lacks it; its subclasses may have it.
        name: The name of the method.
    """

    def __init__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        if inspect.getattr_static(owner, self._name) is not self:
            # A subclass has the method, and calls that of ``super()``.
            owner = self._owner
        names = ", ".join(
            name
            for name in dir(owner)
            if not name.startswith("_") and not isinstance(inspect.getattr_static(owner, name), Absent)
        )
        raise NotOfferedError(f"{owner.__name__}.{self._name} is not offered. Available: {names}.")


def lacks(*names: str) -> Callable[[type[_Class]], type[_Class]]:
    """Make a class decorator that refuses methods by name; a subclass of the program may define them."""

    def mark(owner: type[_Class]) -> type[_Class]:
        for name in names:
            setattr(owner, name, Absent(owner, name))
        return owner

    return mark


__all__ = ["Absent", "lacks"]
