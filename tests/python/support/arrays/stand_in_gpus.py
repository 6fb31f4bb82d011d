"""Lets tests that simulate GPUs run on others: real GPUs of the stand-in driver, with strict device arrays.

``pytest --gpus stand-in`` installs it, also in the programs that tests start by ``support.devices.run_on_gpus``. A GPU
of ``ALLOTMENT_SIMULATED_GPUS`` then is a device of the driver with as much memory: pools take regions of
``cuMemAlloc``, and values are strict arrays in them. Tests that simulate none have one GPU, too.
"""

import ctypes
import os
from collections.abc import Iterator
from typing import Any

from allotment import Pool
from allotment._core import cuda_memory_info
from allotment.devices import logical, physical, plan
from allotment.devices.device_tuples import HardwareIndex
from allotment.devices.physical import Gpu, Physical
from support.cuda import DRIVER

#: The variable that tells the programs of tests.
VARIABLE = "ALLOTMENT_TEST_GPUS"
#: As many as a test simulates, and more.
_DEVICES = 64


class StandInGpu(Gpu):
    """A GPU of the stand-in driver."""

    def memory_info(self) -> tuple[int, int]:
        """Return free and total bytes."""
        return cuda_memory_info(self.hardware_index)[0], self.memory


def install() -> None:
    """Replace simulated GPUs in this process."""
    os.environ["ALLOTMENT_CUDA_DRIVER"] = str(DRIVER)
    os.environ[VARIABLE] = "stand-in"
    driver = ctypes.CDLL(str(DRIVER))
    driver.standInConfigure.argtypes = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint)
    driver.standInSetMemory.argtypes = (ctypes.c_size_t, ctypes.c_uint64)
    driver.standInConfigure(_DEVICES, 1 << 40, 2 << 20, 1)

    known = physical._real()

    def gpus(sizes: tuple[int, ...]) -> Iterator[Gpu]:
        for index, memory in enumerate(sizes):
            # What earlier tests have not given back is not missing: they had GPUs of their own.
            free, total = cuda_memory_info(index)
            driver.standInSetMemory(index, memory + total - free)
            yield StandInGpu(
                HardwareIndex(index),
                # As of the simulated ones, which tests name in masks.
                f"GPU-{index:08x}-0000-4000-8000-000000000000",
                known[index].card,
                memory,
                known[index].compute_capability,
                known[index].pci_bus_id,
                simulated=False,
            )

    # `Any`: these are no interfaces.
    replaced: Any = physical
    replaced._simulated = gpus
    # Tests that simulate none have one, too: what has no device of its own runs there.
    replaced._real = lambda: known[-1:]
    replaced = plan
    # Tests count on every byte.
    replaced.system_reserve = lambda free, major: 0
    use_strict_arrays()


def use_strict_arrays() -> None:
    """Let real GPUs, those of the stand-in driver, compute with strict device arrays."""
    replaced: Any = logical
    replaced._library_of = _library_of


def _library_of(on: Physical, pool: Pool) -> Any:
    # Not before: programs of tests look at what an import loads.
    from support.arrays.strict_device import StrictLibrary, strict_device

    assert on.gpu is not None
    return StrictLibrary(strict_device(on.gpu.hardware_index), pool)


__all__ = ["VARIABLE", "install", "use_strict_arrays"]
