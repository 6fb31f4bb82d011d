"""Lists physical devices: the CPU, and the GPUs that ``CUDA_VISIBLE_DEVICES`` leaves. Opens and reserves nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from allotment._core import format_size
from allotment.devices.device_tuples import HardwareIndex, PhysicalDevice, PhysicalIndex
from allotment.devices.environment import settings as environment
from allotment.devices.environment.settings import Settings
from allotment.devices.environment.variables import VISIBLE_DEVICES
from allotment.devices.environment.visible_devices_mask import read_mask
from allotment.text import show_value


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU before the mask."""

    #: Index in the hardware's own list.
    hardware_index: HardwareIndex
    #: ``GPU-…``, of which a prefix may stand in the mask.
    identifier: str
    #: The card's name.
    card: str
    #: Bytes in all.
    memory: int
    #: Compute capability, major and minor; (0, 0) where there is none.
    compute_capability: tuple[int, int]
    #: Bytes of the free memory that TensorFlow's rule leaves to others.
    system_reserve: int
    #: Greatest and least stream priority; lower numbers go first.
    priorities: tuple[int, int]
    #: Made of host memory.
    simulated: bool


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
        bus = "simulated" if self.gpu.simulated else "unknown"
        return (
            f"device: {self.index}, name: {self.gpu.card}, pci bus id: {bus}, "
            f"compute capability: {major}.{minor}"
        )

    def details(self) -> dict[str, object]:
        """Return the details of a GPU as ``get_device_details`` does; empty for the CPU.

        ``device_name`` and ``compute_capability`` are TensorFlow's; ours are ``hardware_index`` (before the
        mask), ``uuid``, ``memory`` (bytes) and ``simulated``.
        """
        if self.gpu is None:
            return {}
        return {
            "device_name": self.gpu.card,
            "compute_capability": self.gpu.compute_capability,
            "hardware_index": int(self.gpu.hardware_index),
            "uuid": self.gpu.identifier,
            "memory": self.gpu.memory,
            "simulated": self.gpu.simulated,
        }


def discover(settings: Settings) -> tuple[Physical, ...]:
    """List the CPU, then the GPUs that the mask leaves, in its order."""
    found = hardware(settings)
    mask = read_mask(settings.visible_devices, [gpu.identifier for gpu in found])
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
    """List every GPU, before the mask, in the hardware's own order."""
    return tuple(_simulated(settings.simulated_gpus or ()))


def _simulated(sizes: tuple[int, ...]) -> Iterator[Gpu]:
    for index, memory in enumerate(sizes):
        yield Gpu(
            hardware_index=HardwareIndex(index),
            # The same in every process; the first group differs between GPUs.
            identifier=f"GPU-{index:08x}-0000-4000-8000-000000000000",
            card=f"Simulated GPU (hardware {index}, {format_size(memory)} of host memory)",
            memory=memory,
            compute_capability=(0, 0),
            # No other process uses it.
            system_reserve=0,
            # What TensorFlow's own tests report of NVIDIA's cards.
            priorities=(-2, 0),
            simulated=True,
        )
