"""Names of devices as strategies take them."""

from typing import Any

from allotment.devices.names import device_name, parse
from allotment.devices.values import LogicalDevice


def resolved(name: Any) -> str:
    """The full name of a device of this process, given by name or as a ``LogicalDevice``.

    What the name leaves out is the first device's. Whether there is such a device is not looked at.

    Raises:
        ValueError: Not a device name.
    """
    given = name.name if isinstance(name, LogicalDevice) else name
    return device_name("CPU", 0).merged_with(parse(given)).to_string()


__all__ = ["resolved"]
