"""Memory growth: which GPUs start small and double, instead of reserving their limit at once."""

from dataclasses import dataclass
from typing import Any

from allotment._core import show_value
from allotment.devices.configuration import Change, Configuration, ConfigurationState
from allotment.devices.device_tuples import PhysicalDevice
from allotment.devices.environment.variables import FORCE_GROWTH
from allotment.devices.options.flags import as_bool


@dataclass(frozen=True, slots=True)
class Growth:
    """Whether the pools of a GPU grow."""

    on: bool
    #: The setting that decided it, for messages.
    set_by: str


def set_growth(state: ConfigurationState, device: Any, enable: Any) -> None:
    """Set the growth of one GPU by TensorFlow's rules (device-config API, section 6.1).

    Raises:
        ValueError: The device does not exist, has logical devices configured, or is not a GPU.
        RuntimeError: The runtime is ready and has another value.
    """
    configuration = state.configuration
    gpu = configuration.require(device)
    if gpu.device in configuration.splits:
        raise ValueError("Cannot set memory growth on device when virtual devices configured")
    if gpu.gpu is None:
        raise ValueError("Cannot set memory growth on non-GPU and non-Pluggable devices")
    if configuration.growth[gpu.device] == enable:
        return
    refusal = "Physical devices cannot be modified after being initialized"
    change = Change(
        f"Memory growth of {gpu.device.name}",
        show_value(configuration.growth[gpu.device]),
        show_value(enable),
    )
    state.changeable(refusal, change).growth[gpu.device] = enable


def stored_growth(state: ConfigurationState, device: Any) -> Any:
    """Return the growth that the program set for one GPU, or ``None`` if it set none.

    Raises:
        ValueError: The device does not exist.
        KeyError: It is not a GPU.
    """
    return state.configuration.growth[state.configuration.require(device).device]


def set_experimental_growth(state: ConfigurationState, device: Any, enable: bool) -> None:
    """Set the growth of one GPU, independent of its logical devices and of the other GPUs' growth.

    Raises:
        ValueError: The device does not exist or is not a GPU.
        TypeError: ``enable`` is neither a bool nor a whole number.
        RuntimeError: The runtime is ready and has another value.
    """
    gpu = state.configuration.require(device)
    if gpu.gpu is None:
        raise ValueError(f"Only a GPU's memory grows, not that of {gpu.device.name}")
    enable = as_bool(enable)
    if state.configuration.experimental_growth.get(gpu.device) == enable:
        return
    refusal = "Physical devices cannot be modified after being initialized"
    stored = state.configuration.experimental_growth.get(gpu.device)
    change = Change(f"Memory growth of {gpu.device.name}", show_value(stored), show_value(enable))
    state.changeable(refusal, change).experimental_growth[gpu.device] = enable


def check_growth(configuration: Configuration) -> None:
    """Check what is checked when settings are put together (device-config API, section 6.4).

    Configured logical devices of any device, even of the CPU, turn growth off, and the check with it.

    Raises:
        ValueError: Visible GPUs disagree; unset and off are two values.
        TypeError: A value is no bool.
    """
    if configuration.splits:
        return
    asked = {
        gpu.device: configuration.growth[gpu.device]
        for gpu in configuration.visible_gpus
        if gpu.device not in configuration.experimental_growth
    }
    if len(set(asked.values())) > 1:
        values = ", ".join(f"{device.name} has {value}" for device, value in asked.items())
        raise ValueError(
            f"Memory growth cannot differ between GPU devices\n{values}. Set the same on each, hide the "
            "others, or use allotment.experimental.set_memory_growth, which allows it."
        )
    for value in asked.values():
        _as_growth(value)


def configured_growth(configuration: Configuration, device: PhysicalDevice) -> Growth:
    """Return the growth of one GPU by the program's calls alone."""
    if configuration.session_growth is not None:
        return Growth(configuration.session_growth, "gpu_options.allow_growth")
    if (own := configuration.experimental_growth.get(device)) is not None:
        return Growth(own, "allotment.experimental.set_memory_growth")
    if configuration.splits:
        return Growth(False, "off, because logical devices are configured")
    value = configuration.growth[device]
    return Growth(_as_growth(value), "default" if value is None else "set_memory_growth")


def effective_growth(configuration: Configuration, device: PhysicalDevice) -> Growth:
    """Return the growth of one GPU: the environment's setting, else the program's."""
    forced = configuration.settings.force_growth
    if forced is None:
        return configured_growth(configuration, device)
    return Growth(forced, FORCE_GROWTH.name)


def overridden_growth(configuration: Configuration) -> bool | None:
    """Return the configured growth that the environment overrides, or ``None`` if it overrides none."""
    forced = configuration.settings.force_growth
    for gpu in configuration.visible_gpus:
        configured = configured_growth(configuration, gpu.device).on
        if forced is not None and configured != forced:
            return configured
    return None


def dropped_growth(configuration: Configuration) -> tuple[PhysicalDevice, ...]:
    """Return the GPUs whose growth the program set in vain, because it configured logical devices."""
    if not configuration.splits:
        return ()
    return tuple(
        gpu.device
        for gpu in configuration.visible_gpus
        if configuration.growth[gpu.device] and not effective_growth(configuration, gpu.device).on
    )


def _as_growth(value: Any) -> bool:
    return value is not None and as_bool(value)
