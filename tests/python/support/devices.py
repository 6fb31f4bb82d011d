"""A runtime of the test's own: another context in the place of the process's one."""

import subprocess
import sys
import textwrap
from typing import Any

import pytest

from allotment import Pool
from allotment.devices import context as module
from allotment.devices.context import Context
from allotment.devices.settings import VARIABLES
from allotment.tf.config import (
    LogicalDeviceConfiguration,
    PhysicalDevice,
    list_physical_devices,
    set_logical_device_configuration,
)
from support.child import run_program

MIB = 1 << 20
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def fresh(monkeypatch: pytest.MonkeyPatch, gpus: str = "0", **environ: str) -> Context:
    """Let the functions of `allotment.tf.config` see these simulated GPUs and variables, in a new context."""
    made = Context({"ALLOTMENT_SIMULATED_GPUS": gpus, **environ})
    monkeypatch.setattr(module, "_context", made)
    return made


def notes(error: BaseException) -> str:
    """What a traceback shows behind the text."""
    return "\n".join(getattr(error, "__notes__", ()))


def next_line() -> int:
    """Number of the line after the one that calls this."""
    return sys._getframe(1).f_lineno + 1


def run_on_gpus(gpus: str, program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter with these variables and no other of ours. Its text starts on line 2."""
    ours = [variable.name for variable in VARIABLES]
    wanted = {"ALLOTMENT_SIMULATED_GPUS": gpus, **environ}
    first = f"import os; [os.environ.pop(name, None) for name in {ours}]; os.environ.update({wanted})"
    return run_program(first + "\n" + textwrap.dedent(program).strip() + "\n")


def gpus() -> list[PhysicalDevice]:
    """The GPUs of the runtime at hand."""
    return list_physical_devices("GPU")


def pools(context: Context) -> list[Pool]:
    """The pools of its logical devices, by index."""
    return [device.pool for device in context.ready().devices if device.pool is not None]


def limits(context: Context) -> list[tuple[str, int]]:
    """Of each logical GPU the physical one, such as ``GPU:0``, and the limit in MiB."""
    return [
        (device.physical.device.name.removeprefix("/physical_device:"), device.plan.limit.nbytes // MIB)
        for device in context.ready().devices
        if device.plan.limit is not None
    ]


def split(gpu: PhysicalDevice, *wanted: Any) -> None:
    """Configure logical devices: configurations, or memory limits in MiB."""
    mine = [
        one if isinstance(one, LogicalDeviceConfiguration) else LogicalDeviceConfiguration(one)
        for one in wanted
    ]
    set_logical_device_configuration(gpu, mine)
