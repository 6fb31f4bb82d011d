"""Import of packages that a user may not have, with errors that say what is missing and what to install."""

import importlib
from typing import Any


def load_package(name: str, needed_for: str, install: str) -> Any:
    """Import a package and return its module.

    Args:
        name: The module's name, such as ``"cuda.core"``.
        needed_for: What needs it, as the start of the error's sentence.
        install: The command that installs it.

    Raises:
        ModuleNotFoundError: It is not installed.
        ImportError: It is, and its import fails; the cause says why.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        error.__traceback__ = None
        is_absent = error.name is not None and f"{name}.".startswith(f"{error.name}.")
        failed: Exception = error
    # A package whose libraries are missing raises whatever they raise: OSError, ValueError, its own classes.
    except Exception as error:
        error.__traceback__ = None
        is_absent, failed = False, error
    if is_absent:
        raise ModuleNotFoundError(f"{needed_for} {name}, which is not installed: {install}", name=name)
    kind = type(failed).__name__
    raise ImportError(
        f"{needed_for} {name}, which is installed, and whose import fails with {kind}: {failed}", name=name
    ) from failed


def find_attribute(module: Any, path: str, install: str) -> Any:
    """Return an attribute of a package, such as ``"cuda.memory.UnownedMemory"``.

    Raises:
        ImportError: The package has no such attribute: it is too old, too new, or built without CUDA.
    """
    value = module
    for name in path.split("."):
        value = getattr(value, name, None)
        if value is None:
            version = getattr(module, "__version__", "of an unknown version")
            raise ImportError(
                f"{module.__name__} {version} has no {path}, which allotment needs: another release or build of it is "
                f"needed: {install}",
                name=module.__name__,
            )
    return value


__all__ = ["find_attribute", "load_package"]
