"""Full names of the devices that strategies take as arguments."""

from typing import Any

from allotment.devices.device_tuples import LogicalDevice
from allotment.devices.names import device_name, parse


def full_name(name: Any) -> str:
    """Return the full name of a device of this process, given by name or as a ``LogicalDevice``.

    Parts that the name leaves out are those of the first device. The device need not exist.

    Raises:
        ValueError: Not a device name.
    """
    given = name.name if isinstance(name, LogicalDevice) else name
    return device_name("CPU", 0).merged_with(parse(given)).to_string()


__all__ = ["full_name"]
