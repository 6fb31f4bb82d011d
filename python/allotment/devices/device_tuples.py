"""Named tuples that stand for devices in programs, equal when their fields are (device-config API, section 4)."""

from typing import NamedTuple, NewType

#: Index of a GPU in the hardware's own list, before the environment's mask.
HardwareIndex = NewType("HardwareIndex", int)

#: Index among the devices of one type that the process sees, after the mask: the number in a physical name.
PhysicalIndex = NewType("PhysicalIndex", int)

#: Index among the logical devices of one type: the number in ``/device:GPU:0``.
LogicalIndex = NewType("LogicalIndex", int)


class PhysicalDevice(NamedTuple):
    """A device that the process sees, such as ``/physical_device:GPU:0``. As ``tf.config.PhysicalDevice``."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that operations run on, such as ``/device:GPU:0``. As ``tf.config.LogicalDevice``."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """One logical device on a physical one. As ``tf.config.LogicalDeviceConfiguration``.

    Args:
        memory_limit: MiB, a fraction of one is dropped. Required for a GPU, not allowed for the CPU.
        experimental_priority: Priority of the device's streams; lower numbers go first. GPUs only, for all
            logical devices or none.
        experimental_device_ordinal: Logical devices are numbered in the order of these. GPUs only, for all
            logical devices of a GPU or none.
    """

    memory_limit: float | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None
