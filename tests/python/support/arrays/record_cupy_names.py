"""Writes ``cupy_names.json``: the functions, ufuncs and array methods that an installed CuPy has.

CuPy imports without a GPU and without a driver. Run it with a Python that has CuPy's wheel::

    python -m venv cupy-names && cupy-names/bin/pip install cupy-cuda12x==14.2.0
    cupy-names/bin/python tests/python/support/arrays/record_cupy_names.py
"""

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import numpy

#: The modules whose functions NumPy's dispatch finds, by the part of their name behind ``numpy`` and ``cupy``.
MODULES = ("", "linalg", "fft", "lib.stride_tricks")


def parameters(function: Any) -> list[str] | None:
    """Return the names of a function's parameters, with stars; ``None`` where a compiled function tells none."""
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(each.kind, "") + name for name, each in found.items()]


def names() -> dict[str, Any]:
    """Return what CuPy has: its version, functions with their parameters, ufuncs with their loops, methods."""
    cupy: Any = importlib.import_module("cupy")
    special: Any = importlib.import_module("cupyx.scipy.special")
    functions: dict[str, Any] = {}
    ufuncs: dict[str, Any] = {}
    for part in MODULES:
        module = importlib.import_module(f"cupy.{part}" if part else "cupy")
        for name, value in vars(module).items():
            if name.startswith("_") or not callable(value) or isinstance(value, type):
                continue
            if isinstance(value, cupy.ufunc):
                ufuncs[name] = value.types
            elif getattr(numpy, name, None) is not value:
                functions[f"{part}.{name}" if part else name] = parameters(value)
    for name, value in vars(special).items():
        if isinstance(value, cupy.ufunc):
            ufuncs.setdefault(name, value.types)
    # A generalized ufunc is of another class, which tells no loops.
    for name in [name for name in functions if isinstance(getattr(numpy, name, None), numpy.ufunc)]:
        del functions[name]
        ufuncs[name] = None
    methods = [name for name in dir(cupy.ndarray) if not name.startswith("_")]
    return {"version": cupy.__version__, "functions": functions, "ufuncs": ufuncs, "methods": methods}


def main() -> None:
    """Write the file beside this one."""
    path = Path(__file__).with_name("cupy_names.json")
    found = names()
    lines = [f'"version": {json.dumps(found["version"])}', f'"methods": {json.dumps(found["methods"])}']
    for kind in ("functions", "ufuncs"):
        rows = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(found[kind].items())
        )
        lines.append(f'"{kind}": {{\n{rows}\n}}')
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
