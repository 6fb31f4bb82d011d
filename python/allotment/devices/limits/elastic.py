"""Elastic GPUs, which TensorFlow does not have: pools that have memory for the pages in use only."""

from typing import Any, Final

from allotment._core import format_size, show_value
from allotment.devices.configuration import Change, Configuration, ConfigurationState
from allotment.devices.device_tuples import PhysicalDevice
from allotment.devices.environment.variables import GUARD
from allotment.devices.options.flags import as_bool
from allotment.errors import InvalidArgumentError

#: Page size of elastic pools of devices, in bytes: that of huge pages and of CUDA's mappings.
PAGE_SIZE: Final = 2 << 20

#: Name of the setting in messages.
ELASTIC_SETTING: Final = "allotment.experimental.set_memory_elastic"


def set_experimental_elastic(state: ConfigurationState, device: Any, enable: Any) -> None:
    """Set whether the pools of a GPU are elastic.

    Raises:
        ValueError: The device does not exist or is not a GPU; or it is a device of OpenCL; or it is simulated, and
            guard mode is on.
        TypeError: ``enable`` is neither a bool nor a whole number.
        RuntimeError: The runtime is ready and has another value.
    """
    configuration = state.configuration
    physical = configuration.require(device)
    if physical.gpu is None:
        raise ValueError(f"Only a GPU's memory can be elastic, not that of {physical.device.name}")
    enable = as_bool(enable)
    if enable and physical.gpu.opencl is not None:
        raise ValueError(
            f"The memory of {physical.device.name} cannot be elastic: OpenCL gives whole regions, and not single "
            f"pages. Leave out {ELASTIC_SETTING}; set_memory_growth lets its pool start small."
        )
    if enable and physical.gpu.simulated and configuration.settings.guard:
        raise ValueError(
            f"The memory of {physical.device.name} cannot be elastic while {GUARD.name}=1: guard mode needs whole "
            f"regions. Unset {GUARD.name}, or leave out {ELASTIC_SETTING}."
        )
    stored = is_elastic(configuration, physical.device)
    if stored == enable:
        return
    change = Change(f"Elastic memory of {physical.device.name}", show_value(stored), show_value(enable))
    refusal = "Physical devices cannot be modified after being initialized"
    state.changeable(refusal, change).experimental_elastic[physical.device] = enable


def is_elastic(configuration: Configuration, device: PhysicalDevice) -> bool:
    """Return whether the pools of a GPU are elastic."""
    return configuration.experimental_elastic.get(device, False)


def check_limit_of_pages(device: PhysicalDevice, limit: int, set_by: str) -> None:
    """Check that the limit of an elastic pool is at least a page.

    Raises:
        InvalidArgumentError: It is not.
    """
    if limit < PAGE_SIZE:
        raise InvalidArgumentError(
            None,
            None,
            f"{ELASTIC_SETTING} makes the memory of {device.name} elastic, in pages of {format_size(PAGE_SIZE)}, and a "
            f"limit of {format_size(limit)}, set by {set_by}, is less than a page. Raise the limit, or leave that call "
            "out.",
        )
