"""Names of devices as strategies take them."""

from typing import Any

from allotment.devices.names import device_name, parse


def resolved(name: Any) -> str:
    """The full name of a device of this process; what the name leaves out is the first one's.

    Whether there is such a device is not looked at.

    Raises:
        ValueError: Not a device name.
    """
    return device_name("CPU", 0).merged_with(parse(name)).to_string()


__all__ = ["resolved"]
