"""Replaces the process-wide device context for a test, and creates devices in it."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from allotment import Pool
from allotment.devices import context as module
from allotment.devices.context import Context
from allotment.devices.environment.settings import VARIABLES
from allotment.tf.config import (
    LogicalDeviceConfiguration,
    PhysicalDevice,
    list_physical_devices,
    set_logical_device_configuration,
)
from support.arrays.stand_in_gpus import VARIABLE
from support.child import run_program

MIB = 1 << 20
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def fresh(monkeypatch: pytest.MonkeyPatch, gpus: str = "0", **environ: str) -> Context:
    """Replace the process-wide context by a new one for the test.

    Args:
        monkeypatch: Restores the former context.
        gpus: Value of `ALLOTMENT_SIMULATED_GPUS`.
        **environ: Further environment variables.
    """
    made = Context({"ALLOTMENT_SIMULATED_GPUS": gpus, **environ})
    monkeypatch.setattr(module, "_context", made)
    return made


def notes(error: BaseException) -> str:
    """Return the notes of an exception, one on each line."""
    return "\n".join(getattr(error, "__notes__", ()))


def next_line() -> int:
    """Return the number of the source line after the caller's."""
    return sys._getframe(1).f_lineno + 1


def run_on_gpus(gpus: str, program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter with simulated GPUs, without other variables of this package.

    The program's text starts on line 2 of the source.
    """
    ours = [variable.name for variable in VARIABLES]
    wanted = {"ALLOTMENT_SIMULATED_GPUS": gpus, **environ}
    first = f"import os; [os.environ.pop(name, None) for name in {ours}]; os.environ.update({wanted})"
    if VARIABLE in os.environ:
        module = {"stand-in": "stand_in_gpus", "opencl": "opencl_gpus"}[os.environ[VARIABLE]]
        first += (
            f"; import sys; sys.path.append({str(Path(__file__).parents[1])!r})"
            f"; from support.arrays.{module} import install; install()"
        )
    return run_program(first + "\n" + textwrap.dedent(program).strip() + "\n")


def gpus() -> list[PhysicalDevice]:
    """Return the physical GPUs of the current context."""
    return list_physical_devices("GPU")


def pools(context: Context) -> list[Pool]:
    """Return the pools of a context's logical devices, ordered by index."""
    return [device.pool for device in context.ready().devices if device.pool is not None]


def limits(context: Context) -> list[tuple[str, int]]:
    """Return for each logical GPU its physical GPU, such as ``GPU:0``, and its limit in MiB."""
    return [
        (device.physical.device.name.removeprefix("/physical_device:"), device.plan.limit.nbytes // MIB)
        for device in context.ready().devices
        if device.plan.limit is not None
    ]


def split(gpu: PhysicalDevice, *wanted: Any) -> None:
    """Split a GPU into logical devices, given by configurations or memory limits in MiB."""
    mine = [
        one if isinstance(one, LogicalDeviceConfiguration) else LogicalDeviceConfiguration(one)
        for one in wanted
    ]
    set_logical_device_configuration(gpu, mine)
