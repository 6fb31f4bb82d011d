"""Limits of whole GPUs, which TensorFlow does not have: unlike its limits they do not turn growth off."""

from typing import Any

from allotment._core import format_size, parse_size, show_value
from allotment.devices.configuration import Change, ConfigurationState


def set_experimental_limit(state: ConfigurationState, device: Any, size: Any) -> None:
    """Limit the memory used of a GPU, by all its logical devices together.

    Raises:
        ValueError: The device does not exist or is not a GPU, or the size is not between 1 byte and what it
            has.
        TypeError: The size is neither a whole number nor a text.
        RuntimeError: The runtime is ready and has another limit.
    """
    physical = state.configuration.require(device)
    if physical.gpu is None:
        raise ValueError(f"Only a GPU can have a memory limit, not {physical.device.name}")
    nbytes = parse_size(size)
    if not 1 <= nbytes <= physical.gpu.memory:
        raise ValueError(
            f"A memory limit of {show_value(size)} is not between 1 byte and the {format_size(physical.gpu.memory)} "
            f"({physical.gpu.memory} bytes) of {physical.device.name}"
        )
    if state.configuration.experimental_limits.get(physical.device) == nbytes:
        return
    refusal = "Memory limits cannot be modified after being initialized"
    stored = state.configuration.experimental_limits.get(physical.device)
    change = Change(f"Memory limit of {physical.device.name}", show_value(stored), show_value(nbytes))
    state.changeable(refusal, change).experimental_limits[physical.device] = nbytes
