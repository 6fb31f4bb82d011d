"""Calls a function so that the NumPy arrays it makes are in one device's memory, with the caller's tag if asked for."""

import contextvars
import functools
import os.path
from collections.abc import Callable
from typing import Any, Final, ParamSpec, Protocol, TypeVar

import numpy as np

from allotment._core import ArrayMemory, set_tag
from allotment.arrays.numpy import LIBRARY
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.messages.call_site import find_caller
from allotment.errors import UnimplementedError

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: Names of operations for tags, by the function of arrays that computes each.
OPERATION_NAMES: Final[dict[Callable[..., Any], str]] = {}


class MemoryRunner(Protocol):
    """Calls a function so that the NumPy arrays it makes are in one device's memory."""

    def __call__(self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call ``function`` with the other arguments and return its result."""


def runner_of(runners: dict[Device, MemoryRunner], device: Device) -> MemoryRunner:
    """Return a device's memory runner from ``runners``; make it and add it if it is not there.

    NumPy's choice of allocator and its handling of floating-point errors belong to a context of ``contextvars``. Each
    thread has one context for each device, made once, and entering it is cheap. The program's own settings of NumPy
    stay as they are.
    """
    runner = runners.get(device)
    if runner is None:
        runner = runners[device] = _make_runner(device)
    return runner


def _make_runner(device: Device) -> MemoryRunner:
    """Make the function that calls others so that their arrays are in a device's memory."""
    context = contextvars.Context()
    # Divisions by zero and the like have a value and no warning, as in TensorFlow.
    context.run(np.seterr, all="ignore")
    # The method of the C type, for speed. Its stub binds one signature of function for good.
    run: MemoryRunner = context.run  # type: ignore[assignment]
    if device.library is not None:
        if device.library.fault is not None:
            raise UnimplementedError(
                None, None, f"{device.name} is a real GPU, and nothing can run there: {device.library.fault}."
            )
        # It finds the memory by itself; NumPy's arrays beside it are in NumPy's own.
        context.run(LIBRARY.set, device.library)
        call = device.library.call
        # Its stub binds one signature of function for good, as above.
        run = functools.partial(context.run, call)  # type: ignore[arg-type]
        return _tagged(run) if device.pool is not None and device.pool.owner_tags else run
    if device.pool is not None:
        context.run(ArrayMemory(device.pool).install)
        if device.pool.owner_tags:
            return _tagged(run)
    return run


def _tagged(run: MemoryRunner) -> MemoryRunner:
    """Make ``run`` tag allocations with the operation and the program's line, as in ``MatMul at train.py:12``."""

    def run_tagged(function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        caller = find_caller()
        name = OPERATION_NAMES.get(function) or getattr(function, "__name__", type(function).__name__)
        outer = set_tag(f"{name} at {os.path.basename(caller.file)}:{caller.line}")
        try:
            return run(function, *args, **kwargs)
        finally:
            set_tag(outer)

    return run_tagged
