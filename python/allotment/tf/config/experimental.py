"""``tf.config.experimental``: memory growth, memory statistics, device policies, and older names.

Source: docs/spec/device-config-api.md, sections 6 and 7.
"""

from typing import Any

from allotment._core import show_text
from allotment.devices.context import context
from allotment.devices.device_tuples import LogicalDeviceConfiguration, PhysicalDevice
from allotment.devices.limits import growth
from allotment.devices.memory import figures
from allotment.devices.messages.device_errors import expected_device, explained
from allotment.devices.options.flags import check_truth
from allotment.tf.config._devices import (
    get_logical_device_configuration,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_logical_device_configuration,
    set_visible_devices,
)
from allotment.tf.names.deprecation import deprecated
from allotment.tf.names.missing_names import refuse_other_names

#: Older names of the same functions.
get_virtual_device_configuration = get_logical_device_configuration
set_virtual_device_configuration = set_logical_device_configuration
VirtualDeviceConfiguration = LogicalDeviceConfiguration


def get_memory_growth(device: PhysicalDevice) -> bool | None:
    """Return the value that ``set_memory_growth`` was called with for a GPU; ``None`` if it was not called.

    As ``tf.config.experimental.get_memory_growth``. The effective setting may differ, because logical devices and the
    environment override it; ``allotment.experimental.get_memory_growth`` returns the effective setting.

    Raises:
        ValueError: The device does not exist.
        KeyError: The device is not a GPU.
    """
    asked: bool | None = growth.stored_growth(context().state(), device)
    return asked


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Choose whether a GPU's pool grows step by step or reserves its limit at first use.

    As ``tf.config.experimental.set_memory_growth``: the setting must be the same for all visible GPUs, and logical
    devices disable it. ``allotment.experimental.set_memory_growth`` has neither restriction.

    Raises:
        ValueError: The device does not exist, is not a GPU, or has logical devices.
        RuntimeError: The runtime is initialized with another value.
    """
    context().change(growth.set_growth, device, enable)


def get_memory_info(device: str) -> dict[str, int]:
    """Return the bytes in use on a device as ``{"current": ..., "peak": ...}``. Initializes the runtime.

    As ``tf.config.experimental.get_memory_info``. The figures add up the sizes of chunks, which are multiples of 256
    bytes and may exceed the requests. They do not include memory that is reserved but free.

    Args:
        device: A device name such as ``"GPU:0"``, ``"/GPU:0"`` or ``"/device:GPU:0"``, in the grammar of
            TensorFlow's runtime.

    Raises:
        ValueError: The name is invalid, matches no device or several, or a device without a pool, such as the CPU.
        TypeError: ``device`` is not a text.
    """
    return figures.memory_info(context().ready().devices, device)


def reset_memory_stats(device: str) -> None:
    """Reset a device's peak to the bytes in use now. As ``tf.config.experimental.reset_memory_stats``.

    Raises:
        ValueError: The name is invalid, matches no device or several, or a device without a pool, such as the CPU.
        TypeError: ``device`` is not a text.
    """
    figures.reset_memory_stats(context().ready().devices, device)


def get_memory_usage(device: str) -> int:
    """Return the bytes in use on a device; deprecated in favour of ``get_memory_info``."""
    deprecated("get_memory_usage", "Use tf.config.experimental.get_memory_info(device)['current'] instead.")
    return get_memory_info(device)["current"]


def get_device_details(device: PhysicalDevice) -> dict[str, Any]:
    """Return the properties of a GPU; an empty dictionary for the CPU.

    As ``tf.config.experimental.get_device_details``.

    Returns:
        A dictionary with ``device_name`` (which states if the GPU is simulated) and ``compute_capability`` (a pair;
        ``(0, 0)`` if simulated); and beyond TensorFlow ``hardware_index`` (the number before
        ``CUDA_VISIBLE_DEVICES``), ``uuid``, ``memory`` (bytes), ``simulated``, of a real GPU ``pci_bus_id``, and of a
        device of OpenCL ``opencl_device``, ``opencl_platform``, ``opencl_version`` and ``opencl_type``.

    Raises:
        ValueError: ``device`` was not obtained from ``list_physical_devices``.
    """
    if not isinstance(device, PhysicalDevice):
        text = f"device must be a tf.config.PhysicalDevice, but got: {show_text(str(device))}"
        detail = expected_device("PhysicalDevice", device, "take one from list_physical_devices()")
        state = context().state_if_known()
        recorded = state is None or not state.configuration.machine_has_gpus
        raise explained(ValueError, text, detail, recorded=recorded)
    state = context().state_if_known()
    for physical in () if state is None else state.configuration.physical:
        if physical.device == device:
            return physical.details()
    raise ValueError(
        "The PhysicalDevice must be one obtained from calling `tf.config.list_physical_devices`, "
        f"but got: {show_text(str(device))}"
    )


def get_device_policy() -> str:
    """Return the policy for inputs on another device than the operation; ``"silent"`` by default.

    As ``tf.config.experimental.get_device_policy``; see ``set_device_policy``.
    """
    return context().device_policy


def set_device_policy(device_policy: str | None) -> None:
    """Set the policy for inputs on another device than the operation.

    As ``tf.config.experimental.set_device_policy``. After the runtime is initialized, the call affects the calling
    thread only.

    Args:
        device_policy: ``"silent"`` copies the input, ``"silent_for_int32"`` copies only int32, ``"warn"`` copies and
            logs a warning, ``"explicit"`` raises an error. ``None`` is ``"silent"``.

    Raises:
        ValueError: ``device_policy`` is not one of these.
    """
    context().device_policy = device_policy


def get_synchronous_execution() -> bool:
    """Return the flag that ``set_synchronous_execution`` stored; true by default."""
    return context().synchronous_execution


def set_synchronous_execution(enable: bool | None) -> None:
    """Store the flag for synchronous execution. It has no effect: execution is always synchronous here."""
    context().synchronous_execution = True if enable is None else bool(enable)


def tensor_float_32_execution_enabled() -> bool:
    """Return the flag that ``enable_tensor_float_32_execution`` stored; true by default."""
    return context().tensor_float_32


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Store the flag for TensorFloat-32 products. It has no effect: NumPy computes float32 products exactly.

    Raises:
        TypeError: ``enabled`` is not a bool.
    """
    check_truth(enabled)
    context().tensor_float_32 = bool(enabled)


def enable_op_determinism() -> None:
    """Store the flag for deterministic operations, which cannot be unset."""
    context().deterministic = True


__all__ = [
    "VirtualDeviceConfiguration",
    "enable_op_determinism",
    "enable_tensor_float_32_execution",
    "get_device_details",
    "get_device_policy",
    "get_memory_growth",
    "get_memory_info",
    "get_memory_usage",
    "get_synchronous_execution",
    "get_virtual_device_configuration",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "reset_memory_stats",
    "set_device_policy",
    "set_memory_growth",
    "set_synchronous_execution",
    "set_virtual_device_configuration",
    "set_visible_devices",
    "tensor_float_32_execution_enabled",
]

refuse_other_names(__name__)
