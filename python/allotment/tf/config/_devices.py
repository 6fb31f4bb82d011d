"""Functions on physical, visible and logical devices, shared by ``tf.config`` and ``tf.config.experimental``.

Source: docs/spec/device-config-api.md, section 5.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from allotment.devices.context import context
from allotment.devices.device_tuples import LogicalDevice, LogicalDeviceConfiguration, PhysicalDevice
from allotment.devices.limits import splits
from allotment.devices.options import visible_devices


class _Absent(Enum):
    ABSENT = "not given"


_ABSENT: Final = _Absent.ABSENT


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """List the physical devices of the process, the CPU first, visible or not.

    The call neither reserves memory nor initializes the runtime. As ``tf.config.list_physical_devices``.

    Args:
        device_type: ``"CPU"`` or ``"GPU"``; ``None`` for all. Any other value gives an empty list.

    Raises:
        ValueError: The value of ``ALLOTMENT_SIMULATED_GPUS`` is invalid.
    """
    physical = context().state().configuration.physical
    return visible_devices.devices_of_type([one.device for one in physical], device_type)


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """List the logical devices, those of the CPU first. Initializes the runtime.

    As ``tf.config.list_logical_devices``.

    Args:
        device_type: ``"CPU"`` or ``"GPU"``; ``None`` for all. Any other value gives an empty list.

    Raises:
        ValueError: Memory growth differs between GPUs, or a GPU's configuration is incomplete.
        OpError: The configuration requires devices or memory that do not exist.
    """
    ready = context().ready()
    # Reports environment variables that have changed since; the result is not needed.
    context().state()
    devices = [device.logical_device for device in ready.devices]
    return [device for device in devices if device_type is None or device.device_type == device_type]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """List the visible physical devices, in the order of ``set_visible_devices``.

    As ``tf.config.get_visible_devices``.

    Args:
        device_type: ``"CPU"`` or ``"GPU"``; ``None`` for all. Any other value gives an empty list.
    """
    return visible_devices.devices_of_type(context().state().configuration.visible, device_type)


def set_visible_devices(
    devices: PhysicalDevice | list[PhysicalDevice], device_type: str | None = None
) -> None:
    """Choose the physical devices that the runtime uses. As ``tf.config.set_visible_devices``.

    Logical GPUs are numbered in the order of the physical devices, not in the order of ``devices``.

    Args:
        devices: A list, or a single device.
        device_type: Type of the devices to replace. ``None`` replaces all, so a list without the CPU hides the CPU,
            and the runtime cannot start.

    Raises:
        ValueError: A device does not exist or is not of the type.
        RuntimeError: The runtime is initialized with other devices.
    """
    context().change(visible_devices.set_visible, devices, device_type)


def get_logical_device_configuration(
    device: PhysicalDevice,
) -> Sequence[LogicalDeviceConfiguration] | None:
    """Return the list of configurations that was set for a device (the same object); ``None`` if none was.

    As ``tf.config.get_logical_device_configuration``.

    Raises:
        ValueError: The device does not exist.
    """
    return splits.stored_splits(context().state(), device)


def set_logical_device_configuration(
    device: PhysicalDevice,
    logical_devices: Sequence[LogicalDeviceConfiguration] | _Absent = _ABSENT,
    *,
    virtual_devices: Sequence[LogicalDeviceConfiguration] | _Absent = _ABSENT,
) -> None:
    """Split a physical device into logical devices. As ``tf.config.set_logical_device_configuration``.

    The limits on a simulated GPU may add up to at most its memory; otherwise the runtime raises an error when it is
    initialized. A configuration on any device disables ``set_memory_growth`` on every GPU.

    Args:
        device: The device to split.
        logical_devices: One configuration for each logical device. Those of a GPU need a ``memory_limit`` in MiB;
            those of the CPU must have none.
        virtual_devices: The older name of ``logical_devices``.

    Raises:
        ValueError: The device does not exist, or a configuration is invalid for its type.
        TypeError: Neither or both of ``logical_devices`` and ``virtual_devices`` are given, or not a sequence.
        RuntimeError: The runtime is initialized with another configuration.
    """
    given: list[Any] = [value for value in (logical_devices, virtual_devices) if value is not _ABSENT]
    if len(given) > 1:
        raise TypeError(
            "set_logical_device_configuration() takes 'logical_devices' or 'virtual_devices', not both"
        )
    if not given:
        raise TypeError(
            "set_logical_device_configuration() missing 1 required positional argument: 'logical_devices'"
        )
    context().change(splits.set_splits, device, given[0])
