"""Lets tests that simulate GPUs run on devices of OpenCL: PoCL's, which it lists as often as asked.

``pytest --gpus opencl`` installs it, also in the programs that tests start by ``support.devices.run_on_gpus``. A GPU
of ``ALLOTMENT_SIMULATED_GPUS`` then is a device of OpenCL of which as many bytes are used: pools take regions of
``clSVMAlloc``, and NumPy computes in them.
"""

import dataclasses
import functools
import os
from collections.abc import Iterator
from typing import Any

from allotment.devices import opencl_devices, physical
from allotment.devices.environment.variables import OpenClRequest
from allotment.devices.physical import Gpu
from support.arrays.stand_in_gpus import VARIABLE

#: As many as a test simulates, and more.
_DEVICES = 64


def install() -> None:
    """Replace simulated GPUs in this process."""
    os.environ[VARIABLE] = "opencl"
    # PoCL lists its device so many times, if OpenCL is not loaded yet.
    os.environ["POCL_DEVICES"] = " ".join(["pthread"] * _DEVICES)
    # One thread each: a test that uses many devices must not start hundreds.
    os.environ["POCL_MAX_PTHREAD_COUNT"] = "1"
    listed = opencl_devices.all_devices
    # `Any`: these are no interfaces.
    replaced: Any = physical
    replaced._simulated = _gpus
    replaced = opencl_devices
    # Tests simulate GPUs that no machine could hold; the memory of PoCL's device is that of the machine.
    replaced.all_devices = functools.cache(
        lambda: tuple(dataclasses.replace(device, memory=1 << 50) for device in listed())
    )


def _gpus(sizes: tuple[int, ...]) -> Iterator[Gpu]:
    requests = tuple(OpenClRequest(number, memory) for number, memory in enumerate(sizes))
    return physical._opencl(requests) if requests else iter(())
