"""Namespaces of ``tf.compat.v1`` that have the names of a namespace of ``tf``, and some of their own."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from allotment.tf.compat.functions.signatures import as_in_1
from allotment.tf.names.missing_names import missing_name_error


def extend_namespace(
    name: str, base: ModuleType, own: Mapping[str, Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a module that extends another one.

    Args:
        name: The full name of the module, for messages.
        base: The module whose public names it has, with the parameters of TensorFlow 1.
        own: Further names, which take precedence.
    """

    def get(attribute: str) -> Any:
        if attribute in own:
            return own[attribute]
        if attribute in base.__all__:
            return as_in_1(attribute, getattr(base, attribute))
        raise missing_name_error(name, attribute, names())

    def names() -> list[str]:
        return sorted({*base.__all__, *own})

    return get, names


class Namespace(ModuleType):
    """A module that extends a namespace of ``tf``; see ``extend_namespace``."""

    def __init__(self, base: ModuleType, **own: Any) -> None:
        super().__init__(f"allotment.tf.compat.v1.{base.__name__.rpartition('.')[2]}", base.__doc__)
        get, names = extend_namespace(self.__name__, base, own)
        # Python calls these two if they are in a module's dictionary.
        self.__dict__.update(__getattr__=get, __dir__=names)


__all__ = ["Namespace", "extend_namespace"]
