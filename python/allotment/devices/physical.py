"""Lists physical devices: the CPU, and the GPUs that ``CUDA_VISIBLE_DEVICES`` leaves. Reserves nothing.

GPUs are simulated, or devices of OpenCL, or real ones as the CUDA driver lists them; it applies the variable itself.
They never mix.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from allotment._core import (
    cuda_devices,
    cuda_memory_info,
    cuda_stream_priorities,
    format_size,
    show_text,
    show_value,
)
from allotment.devices.device_tuples import HardwareIndex, PhysicalDevice, PhysicalIndex
from allotment.devices.environment import settings as environment
from allotment.devices.environment.settings import Settings
from allotment.devices.environment.variables import VISIBLE_DEVICES, OpenClRequest
from allotment.devices.environment.visible_devices_mask import read_mask
from allotment.errors import UnknownError

if TYPE_CHECKING:
    from allotment.devices.opencl_devices import OpenClDevice

#: Greatest and least stream priority of a GPU without streams: what TensorFlow's own tests report of NVIDIA's cards.
_PRIORITIES_WITHOUT_STREAMS = (-2, 0)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A simulated GPU or a device of OpenCL before the mask, or a real GPU after it."""

    #: Index in the hardware's own list; of a real GPU the driver's index, of a device of OpenCL that in the request.
    hardware_index: HardwareIndex
    #: ``GPU-…``, of which a prefix may stand in the mask.
    identifier: str
    #: The card's name.
    card: str
    #: Bytes in all.
    memory: int
    #: Compute capability, major and minor; (0, 0) where there is none.
    compute_capability: tuple[int, int]
    #: Address on the PCI bus; ``"simulated"`` or ``"opencl"`` where there is none.
    pci_bus_id: str
    #: Made of host memory.
    simulated: bool
    #: The device of OpenCL that it is.
    opencl: "OpenClDevice | None" = None

    @property
    def has_host_memory(self) -> bool:
        """Whether the host reads and writes its memory, so that NumPy computes in it."""
        return self.simulated or self.opencl is not None

    def memory_info(self) -> tuple[int, int]:
        """Return free and total bytes; of a simulated GPU and a device of OpenCL nothing is known to be used.

        Raises:
            UnknownError: The driver does not tell.
        """
        if self.has_host_memory:
            return self.memory, self.memory
        try:
            return cuda_memory_info(self.hardware_index)
        except (RuntimeError, ValueError) as error:
            reason = str(error)
        raise UnknownError(
            None, None, f"Failed to query available memory for GPU {self.hardware_index}: {reason}"
        )

    def stream_priorities(self) -> tuple[int, int]:
        """Return the greatest and the least stream priority; lower numbers go first."""
        if self.has_host_memory:
            return _PRIORITIES_WITHOUT_STREAMS
        return cuda_stream_priorities(self.hardware_index)


@dataclass(frozen=True, slots=True)
class Physical:
    """A device that the process sees."""

    device: PhysicalDevice
    #: Index among the devices of its type.
    index: PhysicalIndex
    #: The GPU; ``None`` for the CPU.
    gpu: Gpu | None = None

    @property
    def description(self) -> str:
        """The text about a GPU that logs show behind its logical name; empty for the CPU."""
        if self.gpu is None:
            return ""
        major, minor = self.gpu.compute_capability
        return (
            f"device: {self.index}, name: {self.gpu.card}, pci bus id: {self.gpu.pci_bus_id}, "
            f"compute capability: {major}.{minor}"
        )

    def details(self) -> dict[str, object]:
        """Return the details of a GPU as ``get_device_details`` does; empty for the CPU.

        ``device_name`` and ``compute_capability`` are TensorFlow's; ours are ``hardware_index`` (before the
        mask), ``uuid``, ``memory`` (bytes), ``simulated``, of a real GPU ``pci_bus_id``, and of a device of OpenCL
        ``opencl_device`` (its number there), ``opencl_platform``, ``opencl_version`` and ``opencl_type`` (``"CPU"`` or
        ``"GPU"``).
        """
        if self.gpu is None:
            return {}
        more: dict[str, object] = {}
        if (opencl := self.gpu.opencl) is not None:
            more = {
                "opencl_device": opencl.number,
                "opencl_platform": opencl.platform,
                "opencl_version": opencl.version,
                "opencl_type": opencl.kind,
            }
        elif not self.gpu.simulated:
            more = {"pci_bus_id": self.gpu.pci_bus_id}
        return {
            "device_name": self.gpu.card,
            "compute_capability": self.gpu.compute_capability,
            "hardware_index": int(self.gpu.hardware_index),
            "uuid": self.gpu.identifier,
            "memory": self.gpu.memory,
            "simulated": self.gpu.simulated,
            **more,
        }


def discover(settings: Settings) -> tuple[Physical, ...]:
    """List the CPU, then the GPUs that the mask leaves, in its order.

    Raises:
        ImportError: Devices of OpenCL are asked for, and pyopencl cannot be imported.
        ValueError: A device of OpenCL that is asked for cannot be used.
    """
    found = hardware(settings)
    # Real ones are what the driver has left of them.
    is_masked = settings.simulated_gpus is None and not settings.opencl_devices
    text = None if is_masked else settings.visible_devices
    mask = read_mask(text, [gpu.identifier for gpu in found])
    if mask.fault is not None and found:
        environment.warn(
            f"{VISIBLE_DEVICES.name}={show_value(settings.visible_devices)}: {mask.fault}. "
            f"Number of GPUs: {len(found)}. Accepted: {VISIBLE_DEVICES.accepted}."
        )
    return (
        Physical(PhysicalDevice("/physical_device:CPU:0", "CPU"), PhysicalIndex(0)),
        *(
            Physical(
                PhysicalDevice(f"/physical_device:GPU:{index}", "GPU"), PhysicalIndex(index), found[hardware]
            )
            for index, hardware in enumerate(mask.chosen)
        ),
    )


def hardware(settings: Settings) -> tuple[Gpu, ...]:
    """List every GPU before the mask: devices of OpenCL, or simulated GPUs; or the GPUs that the CUDA driver lists."""
    if settings.opencl_devices:
        return tuple(_opencl(settings.opencl_devices))
    if settings.simulated_gpus is not None:
        return tuple(_simulated(settings.simulated_gpus))
    return _real()


@functools.cache
def _real() -> tuple[Gpu, ...]:
    """List real GPUs, once; none where there is no driver, and with a warning where it cannot be used."""
    try:
        devices = cuda_devices() or ()
    except RuntimeError as error:
        environment.warn(f"No GPU is listed: {show_text(str(error))}")
        devices = ()
    return tuple(
        Gpu(HardwareIndex(index), identifier, card, memory, compute_capability, pci_bus_id, simulated=False)
        for index, (card, memory, compute_capability, pci_bus_id, identifier) in enumerate(devices)
    )


def _opencl(requests: tuple[OpenClRequest, ...]) -> Iterator[Gpu]:
    # Not before: most programs ask for none.
    from allotment.devices.opencl_devices import chosen_devices

    for index, (device, memory) in enumerate(chosen_devices(requests)):
        yield Gpu(
            hardware_index=HardwareIndex(index),
            # OpenCL has none that every device knows.
            identifier=f"GPU-{device.number:08x}-0000-4000-8000-000000000000",
            card=f"{device.name} (OpenCL {device.kind}, {device.platform})",
            memory=memory,
            compute_capability=(0, 0),
            pci_bus_id="opencl",
            simulated=False,
            opencl=device,
        )


def _simulated(sizes: tuple[int, ...]) -> Iterator[Gpu]:
    for index, memory in enumerate(sizes):
        yield Gpu(
            hardware_index=HardwareIndex(index),
            # The same in every process; the first group differs between GPUs.
            identifier=f"GPU-{index:08x}-0000-4000-8000-000000000000",
            card=f"Simulated GPU (hardware {index}, {format_size(memory)} of host memory)",
            memory=memory,
            compute_capability=(0, 0),
            pci_bus_id="simulated",
            simulated=True,
        )
