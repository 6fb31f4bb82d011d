"""SciPy's functions, imported when the first one is called."""

import contextvars
import functools
import importlib
import importlib.util
from typing import Any


@functools.cache
def from_scipy(module: str, name: str) -> Any:
    """Return a function of one of SciPy's modules, such as ``from_scipy("special", "erf")``.

    Raises:
        ModuleNotFoundError: SciPy is not installed: ``pip install allotment[scipy]``.
    """
    if importlib.util.find_spec("scipy") is None:
        raise ModuleNotFoundError(
            f"this operation computes with scipy.{module}.{name}, and SciPy is not installed: "
            "pip install 'allotment[scipy]'"
        )
    # Importing SciPy takes longer than importing this package. NumPy's memory handler belongs to the context: in a new
    # one, the arrays that SciPy keeps are not in the memory of the device that the first call happens to run on.
    return getattr(contextvars.Context().run(importlib.import_module, f"scipy.{module}"), name)


__all__ = ["from_scipy"]
