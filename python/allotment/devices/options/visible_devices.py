"""The physical devices that the program uses: ``set_visible_devices``."""

from typing import Any

from allotment._core import show_value
from allotment.devices.configuration import Change, ConfigurationState
from allotment.devices.device_tuples import PhysicalDevice
from allotment.devices.messages.device_errors import explained


def devices_of_type(devices: list[PhysicalDevice], device_type: Any) -> list[PhysicalDevice]:
    """Return a new list of the devices of one type; ``None`` is all. The type is not checked: ``"cpu"`` fits none."""
    return [device for device in devices if device_type is None or device.device_type == device_type]


def set_visible(state: ConfigurationState, devices: Any, device_type: Any) -> None:
    """Choose the devices to use (device-config API, section 5.4).

    Any value but a list is the only element of one. With a type, the new devices replace those of that type alone, and
    come last; without a type they replace all.

    Raises:
        ValueError: An element is no device that exists, or not of the type.
        RuntimeError: The runtime is ready and has another list.
    """
    wanted = devices if isinstance(devices, list) else [devices]
    of_many = "pass a list of them"
    for device in wanted:
        state.configuration.require(device, of_many=of_many)
        if device_type is not None and device.device_type != device_type:
            raise explained(
                ValueError,
                f"Unrecognized device: {show_value(device)}",
                f"Its type is {device.device_type!r}, and the devices of type {show_value(device_type)} are to be set.",
                recorded=not state.configuration.machine_has_gpus,
            )
    kept = []
    if device_type is not None:
        kept = [device for device in state.configuration.visible if device.device_type != device_type]
    visible = kept + [state.configuration.require(device).device for device in wanted]
    if visible == state.configuration.visible:
        return
    names = [[device.name for device in each] for each in (state.configuration.visible, visible)]
    refusal = "Visible devices cannot be modified after being initialized"
    state.changeable(refusal, Change("Visible devices", *map(show_value, names))).visible = visible
