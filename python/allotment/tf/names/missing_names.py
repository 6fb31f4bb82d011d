"""Errors for names that a namespace lacks, which tell missing names of TensorFlow from typing errors.

``public_names.txt`` lists TensorFlow's public names.
"""

import difflib
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final, Literal, NoReturn

from allotment.errors import WithFields

#: Least similarity, from 0 to 1, of a name that is suggested, and of one that is listed as related.
_NEAR: Final = 0.75
_RELATED: Final = 0.5
#: Namespaces with at most this many names are listed in full.
_LISTED: Final = 160

#: The package whose namespaces correspond to TensorFlow's.
_PACKAGE: Final = "allotment.tf"
Version = Literal["1", "2"]
#: Namespaces that contain the whole API of a version of TensorFlow.
_INTERFACES: Final[dict[str, Version]] = {"compat.v1": "1", "v1": "1", "compat.v2": "2"}
Names = dict[str, frozenset[str]]


class NotOfferedError(WithFields, NotImplementedError, AttributeError):
    """The package does not implement this part of TensorFlow. An ``AttributeError``, so that ``hasattr`` is false."""


def missing_name_error(module: str, name: str, offered: Iterable[str]) -> AttributeError:
    """Create the exception for a name that a namespace of this package lacks.

    Args:
        module: The full name of the namespace, such as ``allotment.tf.compat.v1.nn``.
        name: The missing name.
        offered: The names that the namespace has.

    Returns:
        A ``NotOfferedError`` that lists the existing names if TensorFlow 2.21 has the name in this namespace, else
        an ``AttributeError`` that suggests a similar name if there is one.
    """
    # Python and its tools look up private names of their own.
    if name.startswith("_"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    there = sorted(each for each in offered if not each.startswith("_"))
    path, names = _tensorflow_module(module)
    if name in names.get(path, ()):
        return NotOfferedError(
            f"{module}.{name} is not offered. Available: {_list_names(name, path, there, names)}."
        )
    near = difflib.get_close_matches(name, there, 1, _NEAR)
    if name in public_names("1").get(path, ()):
        hint = "; it is a name of compat.v1"
    else:
        hint = f"; there is {near[0]!r}" if near else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")


def module_getattr(module: str, offered: Iterable[str]) -> Callable[[str], NoReturn]:
    """Create a module-level ``__getattr__`` that raises ``missing_name_error``.

    Args:
        module: The full name of the module.
        offered: The names that the module has.
    """

    def refuse(name: str) -> NoReturn:
        raise missing_name_error(module, name, offered)

    return refuse


class _PublicPackage(ModuleType):
    """A package without those of its modules that are not public, which Python's import sets as attributes."""

    def __setattr__(self, name: str, value: object) -> None:
        is_own_module = isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        if not is_own_module or name in self.__all__:
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # Programs send functions to other processes with the packages that they name, as Dask does.
        return import_module, (self.__name__,)


def refuse_other_names(module: str) -> None:
    """Take away all but the public names of a module; called at the end of the module.

    What the module imports for itself stays with its functions. Another name raises ``missing_name_error``, unless the
    module has a ``__getattr__``.

    Args:
        module: The module's ``__name__``; its ``__all__`` must be set, or ``__getattr__`` and ``__dir__``.
    """
    names = vars(sys.modules[module])
    offered: list[str] = names.get("__all__", [])
    kind = _PublicPackage if "__path__" in names else ModuleType
    public = kind(module, names["__doc__"])
    kept = {name: value for name, value in names.items() if name.startswith("__") or name in offered}
    kept.setdefault("__getattr__", module_getattr(module, offered))
    kept.setdefault("__dir__", lambda: sorted(offered))
    vars(public).update(kept)
    sys.modules[module] = public


def public_names(version: Version) -> Names:
    """Return the public names of TensorFlow 2.21 by module.

    Args:
        version: ``"1"`` for ``tf.compat.v1``, ``"2"`` for ``tf``.

    Returns:
        Module path, such as ``"nn"``, to names. The top-level module is ``""``.
    """
    return _load_public_names()[version]


@cache
def _load_public_names() -> dict[str, Names]:
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


def _tensorflow_module(module: str) -> tuple[str, Names]:
    """Return the path in TensorFlow of a module of this package, and the names of its API version by module."""
    path = module.removeprefix(_PACKAGE).removeprefix(".")
    for prefix, version in _INTERFACES.items():
        if path == prefix or path.startswith(f"{prefix}."):
            return path[len(prefix) + 1 :], public_names(version)
    return path, public_names("2")


def _list_names(name: str, path: str, there: list[str], names: Names) -> str:
    """List the existing names for an error message; if there are many, only those related to the missing name."""
    if len(there) <= _LISTED:
        return ", ".join(there)
    modules = [each for each in there if f"{path}.{each}".lstrip(".") in names]
    is_module = f"{path}.{name}".lstrip(".") in names
    related = modules if is_module else difflib.get_close_matches(name, there, 8, _RELATED)
    return ", ".join([*related, f"and {len(there) - len(related)} other names, see dir()"])


__all__ = ["NotOfferedError", "missing_name_error", "module_getattr", "public_names", "refuse_other_names"]
