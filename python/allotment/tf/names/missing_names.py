"""The error of a name that a namespace does not have. ``public_names.txt`` says whether TensorFlow has it."""

import difflib
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import Final, Literal, NoReturn

from allotment.errors import WithFields

#: How much two names must have in common, 1 being everything: to suggest one, and to list one as related.
_NEAR: Final = 0.75
_RELATED: Final = 0.5
#: Up to so many names of a namespace are listed in full.
_LISTED: Final = 160

#: The package whose namespaces are TensorFlow's.
_PACKAGE: Final = "allotment.tf"
Version = Literal["1", "2"]
#: Namespaces that are an interface of a version as a whole.
_INTERFACES: Final[dict[str, Version]] = {"compat.v1": "1", "v1": "1", "compat.v2": "2"}
Names = dict[str, frozenset[str]]


class NotOfferedError(WithFields, NotImplementedError, AttributeError):
    """A part of TensorFlow that is not offered. An ``AttributeError``, so that ``hasattr`` says no."""


def missing(module: str, name: str, offered: Iterable[str]) -> AttributeError:
    """Make the error of a name that a namespace of this package lacks.

    Args:
        module: The full name of the namespace, such as ``allotment.tf.compat.v1.nn``.
        name: The name that was asked for.
        offered: The names that the namespace has.

    Returns:
        A ``NotOfferedError`` that lists the names there are if TensorFlow 2.21 has the name in this namespace, else
        an ``AttributeError`` with a similar name if there is one.
    """
    # Python and its tools ask for private names of their own.
    if name.startswith("_"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    there = sorted(each for each in offered if not each.startswith("_"))
    path, names = _in_tensorflow(module)
    if name in names.get(path, ()):
        return NotOfferedError(
            f"{module}.{name} is not offered. What is: {_listed(name, path, there, names)}."
        )
    near = difflib.get_close_matches(name, there, 1, _NEAR)
    if name in public_names("1").get(path, ()):
        hint = "; it is a name of compat.v1"
    else:
        hint = f"; there is {near[0]!r}" if near else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")


def absent(module: str, offered: Iterable[str]) -> Callable[[str], NoReturn]:
    """Make the ``__getattr__`` of a module that has the names in ``offered`` and no others."""

    def refuse(name: str) -> NoReturn:
        raise missing(module, name, offered)

    return refuse


def refuse_other_names(module: str) -> None:
    """Give a namespace a ``__getattr__`` that raises ``missing``, at the end of its file."""
    names = vars(sys.modules[module])
    names.setdefault("__getattr__", absent(module, names["__all__"]))


def public_names(version: Version) -> Names:
    """Return TensorFlow 2.21's public names by module, of ``tf.compat.v1`` ("1") or of ``tf`` ("2").

    Modules are named without ``tf.``; the names at the top are those of ``""``.
    """
    return _recorded()[version]


@cache
def _recorded() -> dict[str, Names]:
    from importlib.resources import files

    found: dict[str, dict[str, set[str]]] = {"1": {}, "2": {}}
    for line in (files("allotment.tf.names") / "public_names.txt").read_text("ascii").splitlines()[1:]:
        versions, module, *names = line.split()
        for version in versions:
            found[version].setdefault(module.strip("."), set()).update(names)
    return {
        version: {module: frozenset(names) for module, names in modules.items()}
        for version, modules in found.items()
    }


def _in_tensorflow(module: str) -> tuple[str, Names]:
    """The module in TensorFlow that a namespace of this package is, and the names of its interface."""
    path = module.removeprefix(_PACKAGE).removeprefix(".")
    for prefix, version in _INTERFACES.items():
        if path == prefix or path.startswith(f"{prefix}."):
            return path[len(prefix) + 1 :], public_names(version)
    return path, public_names("2")


def _listed(name: str, path: str, there: list[str], names: Names) -> str:
    """The names there are: all of them, or of many those of the same kind as the missing one."""
    if len(there) <= _LISTED:
        return ", ".join(there)
    modules = [each for each in there if f"{path}.{each}".lstrip(".") in names]
    is_module = f"{path}.{name}".lstrip(".") in names
    related = modules if is_module else difflib.get_close_matches(name, there, 8, _RELATED)
    return ", ".join([*related, f"and {len(there) - len(related)} other names, see dir()"])


__all__ = ["NotOfferedError", "absent", "missing", "public_names", "refuse_other_names"]
