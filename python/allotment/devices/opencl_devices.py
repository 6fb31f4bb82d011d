"""Devices of OpenCL: which there are, and the memory that they share with the host. Loads pyopencl when it is asked.

A device can be a GPU of the device layer if the host can read and write its memory: fine-grained shared virtual memory,
as OpenCL 2.0 introduced it. Arrays are NumPy's, and kernels use them by the same addresses.
"""

import functools
from dataclasses import dataclass
from typing import Any, Final, Literal

from allotment._core import OpenClSharedMemory, format_size, show_text
from allotment.arrays.optional_package import load_package
from allotment.devices.environment.variables import OPENCL_DEVICES, OpenClRequest
from allotment.errors import UnknownError

#: What installs pyopencl, with a device that every machine has.
INSTALL: Final = 'pip install "pyopencl[pocl]"'


@dataclass(frozen=True, slots=True)
class OpenClDevice:
    """A device of OpenCL of the type CPU or GPU."""

    #: Number among the devices of these types, over all platforms in OpenCL's order.
    number: int
    name: str
    platform: str
    #: The version of OpenCL, such as ``"OpenCL 3.0 PoCL"``.
    version: str
    kind: Literal["CPU", "GPU"]
    #: Bytes in all.
    memory: int
    #: Why the device cannot be a GPU here, as a sentence; ``None`` if it can.
    fault: str | None
    #: The ``pyopencl.Device``.
    handle: Any

    def context(self) -> Any:
        """Return the ``pyopencl.Context`` of the device's memory, the same at each call.

        Raises:
            UnknownError: OpenCL fails.
        """
        return _context(self)

    def shared_memory(self, capacity: int) -> OpenClSharedMemory:
        """Return memory of the device for pools.

        Raises:
            UnknownError: OpenCL fails, or the process was forked after its parent used it.
        """
        cl, context = pyopencl(), self.context()
        try:
            # Memory of a CPU is the machine's, which OpenCL promises without having it.
            return OpenClSharedMemory(
                library_path(cl), context.int_ptr, capacity, within_machine=self.kind == "CPU"
            )
        except RuntimeError as error:
            reason = str(error)
        raise UnknownError(
            None, None, f"OpenCL device {self.number} ({self.name}) has no memory for a pool: {reason}"
        )


def chosen_devices(requests: tuple[OpenClRequest, ...]) -> tuple[tuple[OpenClDevice, int], ...]:
    """Return the devices that were asked for, in that order, each with the bytes to use of its memory.

    Raises:
        ImportError: pyopencl cannot be imported.
        ValueError: A device does not exist, has less memory, or none that the host can read and write.
    """
    listed = all_devices()
    chosen = []
    for request in requests:
        # Each that can be used, if all are asked for.
        found = [device for device in listed if request.number in (None, device.number)]
        usable = [device for device in found if device.fault is None]
        if not usable:
            raise ValueError(_not_usable(request, listed, found))
        for device in usable:
            memory = request.memory or device.memory
            if memory > device.memory:
                raise ValueError(
                    f"{OPENCL_DEVICES.name} asks for {format_size(memory)} of OpenCL device {device.number} "
                    f"({device.name}), which has {format_size(device.memory)}. Ask for that or less."
                )
            chosen.append((device, memory))
    return tuple(chosen)


def _not_usable(request: OpenClRequest, listed: tuple[OpenClDevice, ...], found: list[OpenClDevice]) -> str:
    asked = "all devices of OpenCL" if request.number is None else f"OpenCL device {request.number}"
    if found:
        reasons = " ".join(f"Device {device.number} ({device.name}): {device.fault}" for device in found)
        return f"{OPENCL_DEVICES.name} asks for {asked}, which cannot be a GPU here. {reasons}"
    there = "; ".join(f"{device.number} ({device.name}, {device.platform})" for device in listed)
    instead = (
        f"There are: {there}." if there else f"OpenCL lists no CPU and no GPU: {INSTALL} installs a CPU."
    )
    return f"{OPENCL_DEVICES.name} asks for {asked}, which does not exist. {instead}"


@functools.cache
def all_devices() -> tuple[OpenClDevice, ...]:
    """List the CPUs and GPUs of all platforms of OpenCL, once.

    Raises:
        ImportError: pyopencl cannot be imported.
        ValueError: OpenCL fails.
    """
    cl = pyopencl()
    kinds: dict[int, Literal["CPU", "GPU"]] = {cl.device_type.CPU: "CPU", cl.device_type.GPU: "GPU"}
    try:
        found = [device for platform in _platforms(cl) for device in platform.get_devices()]
        typed = [(device, kinds[bits]) for device in found if (bits := device.type & sum(kinds)) in kinds]
        return tuple(
            OpenClDevice(
                number,
                device.name.strip(),
                device.platform.name.strip(),
                device.version.strip(),
                kind,
                device.global_mem_size,
                _fault(cl, device),
                device,
            )
            for number, (device, kind) in enumerate(typed)
        )
    except cl.Error as error:
        reason = show_text(str(error))
    raise ValueError(f"{OPENCL_DEVICES.name}: the devices of OpenCL cannot be listed: {reason}")


def _platforms(cl: Any) -> Any:
    try:
        return cl.get_platforms()
    except cl.LogicError:  # CL_PLATFORM_NOT_FOUND_KHR: no driver is installed
        return ()


def _fault(cl: Any, device: Any) -> str | None:
    try:
        capabilities = device.svm_capabilities
    except cl.Error:  # OpenCL 1 does not know the question
        capabilities = 0
    if capabilities & cl.device_svm_capabilities.FINE_GRAIN_BUFFER:
        return None
    return (
        "it has no fine-grained shared virtual memory, so that the host cannot read and write its memory by addresses. "
        "A pool over a context of it can serve pyopencl's arrays: allotment.integrations.opencl."
    )


@functools.cache
def _context(device: OpenClDevice) -> Any:
    cl = pyopencl()
    try:
        return cl.Context([device.handle])
    except cl.Error as error:
        reason = show_text(str(error))
    raise UnknownError(None, None, f"OpenCL device {device.number} ({device.name}) has no context: {reason}")


def pyopencl() -> Any:
    """Return the module.

    Raises:
        ImportError: It cannot be imported.
    """
    return load_package("pyopencl", "memory of OpenCL needs", INSTALL)


def library_path(cl: Any) -> str:
    """Return the path of the library with which pyopencl calls OpenCL: its own module, which is linked with it."""
    return str(cl._cl.__file__)


__all__ = ["INSTALL", "OpenClDevice", "all_devices", "chosen_devices", "library_path", "pyopencl"]
