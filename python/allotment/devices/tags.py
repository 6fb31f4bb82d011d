"""Tags of allocations that operations make: the operation and the program's line that asked for it."""

import os.path
from collections.abc import Callable
from typing import Any, Final

from allotment._core import set_tag
from allotment.devices.caller import find_caller

#: What the array functions of operations are called.
NAMES: Final[dict[Callable[..., Any], str]] = {}


def tagged(run: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``run`` tag what it runs, as in ``MatMul at train.py:12``."""

    def run_tagged(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        caller = find_caller()
        name = NAMES.get(function) or getattr(function, "__name__", type(function).__name__)
        outer = set_tag(f"{name} at {os.path.basename(caller.file)}:{caller.line}")
        try:
            return run(function, *args, **kwargs)
        finally:
            set_tag(outer)

    return run_tagged
