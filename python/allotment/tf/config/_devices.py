"""Physical, visible and logical devices: functions that have two names in TensorFlow, each with one body."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from allotment.devices import splits, visibility
from allotment.devices.context import context
from allotment.devices.values import LogicalDevice, LogicalDeviceConfiguration, PhysicalDevice


class _Absent(Enum):
    ABSENT = "not given"


_ABSENT: Final = _Absent.ABSENT


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """List the devices that the process sees, the CPU first, whether they are used or not.

    Reserves nothing and settles nothing: the runtime is not initialized by it. As
    ``tf.config.list_physical_devices``.

    Args:
        device_type: ``"CPU"`` or ``"GPU"``; ``None`` is all. Another value fits none.

    Raises:
        ValueError: ``ALLOTMENT_SIMULATED_GPUS`` cannot be used.
    """
    physical = context().state().configuration.physical
    return visibility.of_type([one.device for one in physical], device_type)


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """List the devices that programs address, the CPU's first. Initializes the runtime.

    As ``tf.config.list_logical_devices``.

    Args:
        device_type: ``"CPU"`` or ``"GPU"``; ``None`` is all. Another value fits none.

    Raises:
        ValueError: Memory growth differs between GPUs, or a GPU's configuration is incomplete.
        OpError: The configuration asks for devices or memory that do not exist.
    """
    ready = context().ready()
    # Not for the answer: for what changed in the environment since.
    context().state()
    devices = [device.logical_device for device in ready.devices]
    return [device for device in devices if device_type is None or device.device_type == device_type]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """List the physical devices that are used, in the order they were set.

    As ``tf.config.get_visible_devices``.

    Args:
        device_type: ``"CPU"`` or ``"GPU"``; ``None`` is all. Another value fits none.
    """
    return visibility.of_type(context().state().configuration.visible, device_type)


def set_visible_devices(
    devices: PhysicalDevice | list[PhysicalDevice], device_type: str | None = None
) -> None:
    """Choose the physical devices to use. As ``tf.config.set_visible_devices``.

    Logical GPUs are numbered in the order of the physical ones, not in this one.

    Args:
        devices: A list, or a single device.
        device_type: Replace only the devices of this type. ``None``: ``devices`` is all that is used, so a
            list without the CPU hides it, and the runtime cannot start.

    Raises:
        ValueError: No such device, or not of the type.
        RuntimeError: The runtime is initialized, and with other devices.
    """
    context().change(visibility.set_visible, devices, device_type)


def get_logical_device_configuration(
    device: PhysicalDevice,
) -> Sequence[LogicalDeviceConfiguration] | None:
    """Return the very list that was set for a device, or ``None``.

    As ``tf.config.get_logical_device_configuration``.

    Raises:
        ValueError: No such device.
    """
    return splits.stored_splits(context().state(), device)


def set_logical_device_configuration(
    device: PhysicalDevice,
    logical_devices: Sequence[LogicalDeviceConfiguration] | _Absent = _ABSENT,
    *,
    virtual_devices: Sequence[LogicalDeviceConfiguration] | _Absent = _ABSENT,
) -> None:
    """Split a physical device into logical ones. As ``tf.config.set_logical_device_configuration``.

    On a simulated GPU the limits may add up to what it has, and not to more: that is an error when the
    runtime starts. On any device, a configuration switches off what ``set_memory_growth`` asked for, on every
    GPU.

    Args:
        device: The device to split.
        logical_devices: One configuration for each logical device. A GPU's need a ``memory_limit`` in MiB;
            the CPU's must have none.
        virtual_devices: The older spelling of ``logical_devices``.

    Raises:
        ValueError: No such device, or an element that its type cannot have.
        TypeError: Neither or both spellings, or no sequence.
        RuntimeError: The runtime is initialized, and with another configuration.
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
