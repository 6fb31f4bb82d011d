"""Memory figures of logical devices, found by name (device-config API, section 6.5)."""

from collections.abc import Sequence
from typing import Any

from allotment._core import Pool, show_text, show_value
from allotment.devices.context import context
from allotment.devices.device_tuples import LogicalDevice, PhysicalDevice
from allotment.devices.logical import LogicalDeviceRuntime
from allotment.devices.messages.device_errors import expected_device, explained
from allotment.devices.messages.device_name_hint import hint_for
from allotment.devices.names import device_name, parse_runtime


def memory_info(devices: Sequence[LogicalDeviceRuntime], text: Any) -> dict[str, int]:
    """Return the bytes of the chunks in use on a device, now and their peak since the start or the last reset.

    Raises:
        ValueError: The text is no device name, or fits no device or several, or the device has no pool.
        TypeError: Not a text.
    """
    pool = find_device(devices, text).pool
    if pool is None:
        raise ValueError(f"Allocator stats not available for device '{as_text(text)}'")
    stats = pool.stats()
    return {"current": stats.in_use, "peak": stats.peak_in_use}


def reset_memory_stats(devices: Sequence[LogicalDeviceRuntime], text: Any) -> None:
    """Set the peaks of a device to the present figures; cumulative counters stay.

    Raises:
        ValueError: The text is no device name, or fits no device or several, or the device has no pool.
        TypeError: Not a text.
    """
    pool: Pool | None = find_device(devices, text).pool
    if pool is None:
        raise ValueError(f"Cannot reset memory stats for device '{as_text(text)}'")
    pool.reset_peaks()


def as_text(text: Any) -> Any:
    """Return "" for ``None`` and decode bytes as UTF-8, as TensorFlow does; return other values unchanged."""
    if text is None:
        return ""
    return text.decode(errors="replace") if isinstance(text, bytes | bytearray) else text


def find_device(devices: Sequence[LogicalDeviceRuntime], text: Any) -> LogicalDeviceRuntime:
    """Find the one device that a text names by the runtime grammar; ``None`` is the empty text.

    Raises:
        ValueError: The text is no device name, or fits no device or several.
        TypeError: Not a text.
    """
    text = as_text(text)
    if not isinstance(text, str):
        raise TypeError(_not_a_name(devices, text))
    name = parse_runtime(text)
    if name is None:
        raise _refused(
            f"Failed parsing device name: '{show_text(text)}'. Note a valid device string should at least contain a "
            'device type and a device index, like "GPU:0".',
            text,
            devices,
        )
    fitting = [device for device in devices if name.matches(device_name(device.kind, device.index))]
    if not fitting:
        raise _refused(f"No matching devices found for '{show_text(text)}'", text, devices)
    if len(fitting) > 1:
        first, second = fitting[0].name, fitting[1].name
        raise ValueError(
            f"Multiple devices match the provided string '{show_text(text)}': '{first}' and '{second}'."
        )
    return fitting[0]


def _refused(words: str, text: str, devices: Sequence[LogicalDeviceRuntime]) -> ValueError:
    configuration = context().state().configuration
    hint = f"{hint_for(text, devices)} {configuration.why_gpus_are_absent()}".rstrip()
    return explained(ValueError, words, hint, recorded=not configuration.machine_has_gpus)


def _not_a_name(devices: Sequence[LogicalDeviceRuntime], value: Any) -> str:
    if isinstance(value, LogicalDevice):
        return expected_device("name of a device", value, f"pass its name, {show_value(value.name)}")
    names = [device.short_name for device in devices]
    if isinstance(value, PhysicalDevice):
        on_it = [device.short_name for device in devices if device.physical.device == value]
        instead = f"the logical devices on it are: {', '.join(on_it) or 'none'}"
    else:
        instead = f"there are: {', '.join(names)}"
    return expected_device("LogicalDevice, or a text such as 'GPU:0'", value, instead)
