"""Memory, policies, and older names: ``tf.config.experimental``."""

from typing import Any

from allotment.devices import growth, memory
from allotment.devices.context import context
from allotment.devices.expected import expected_device
from allotment.devices.explain import explained
from allotment.devices.flags import check_truth
from allotment.devices.values import LogicalDeviceConfiguration, PhysicalDevice
from allotment.text import show_text
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
    """Return what was asked for a GPU, ``None`` until something was.

    As ``tf.config.experimental.get_memory_growth``: it is not what holds, which logical devices and the
    environment have a say in; ``allotment.experimental.get_memory_growth`` tells that.

    Raises:
        ValueError: No such device.
        KeyError: The device is not a GPU.
    """
    asked: bool | None = growth.stored_growth(context().state(), device)
    return asked


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Ask that a GPU's memory is reserved step by step, not all at first use.

    As ``tf.config.experimental.set_memory_growth``: all visible GPUs must have the same, and logical devices
    switch it off. ``allotment.experimental.set_memory_growth`` has neither rule.

    Raises:
        ValueError: No such device, not a GPU, or logical devices are configured on it.
        RuntimeError: The runtime is initialized, and with another value.
    """
    context().change(growth.set_growth, device, enable)


def get_memory_info(device: str) -> dict[str, int]:
    """Return bytes in use on a device: ``{"current": now, "peak": the most since the last reset}``.

    As ``tf.config.experimental.get_memory_info``: sizes of chunks, which are multiples of 256 bytes and may
    exceed the request; not what is reserved. Initializes the runtime.

    Args:
        device: Such as ``"GPU:0"``, ``"/GPU:0"`` or ``"/device:GPU:0"``; read by TensorFlow's runtime
            grammar.

    Raises:
        ValueError: Not a device name, no such device, several of them, or one without a pool, as the CPU.
        TypeError: Not a text.
    """
    return memory.memory_info(context().ready().devices, device)


def reset_memory_stats(device: str) -> None:
    """Make a device's peak what is in use now. As ``tf.config.experimental.reset_memory_stats``.

    Raises:
        ValueError: Not a device name, no such device, several of them, or one without a pool, as the CPU.
        TypeError: Not a text.
    """
    memory.reset_memory_stats(context().ready().devices, device)


def get_memory_usage(device: str) -> int:
    """Return ``get_memory_info(device)["current"]``; deprecated, as in TensorFlow."""
    deprecated("get_memory_usage", "Use tf.config.experimental.get_memory_info(device)['current'] instead.")
    return get_memory_info(device)["current"]


def get_device_details(device: PhysicalDevice) -> dict[str, Any]:
    """Return what is known of a GPU; nothing for the CPU. As ``tf.config.experimental.get_device_details``.

    Keys: ``device_name`` (says if it is simulated), ``compute_capability`` (a pair; ``(0, 0)`` if simulated),
    and beyond TensorFlow ``hardware_index`` (before ``CUDA_VISIBLE_DEVICES``), ``uuid``, ``memory`` (bytes)
    and ``simulated``.

    Raises:
        ValueError: Not a device that was listed. This function lists nothing itself.
    """
    if not isinstance(device, PhysicalDevice):
        text = f"device must be a tf.config.PhysicalDevice, but got: {show_text(str(device))}"
        detail = expected_device("PhysicalDevice", device, "take one from list_physical_devices()")
        state = context().state_so_far()
        recorded = state is None or not state.configuration.machine_has_gpus
        raise explained(ValueError, text, detail, recorded=recorded)
    state = context().state_so_far()
    for physical in () if state is None else state.configuration.physical:
        if physical.device == device:
            return physical.details()
    raise ValueError(
        "The PhysicalDevice must be one obtained from calling `tf.config.list_physical_devices`, "
        f"but got: {show_text(str(device))}"
    )


def get_device_policy() -> str:
    """Return what happens to an input that is on another device than the operation: ``"silent"`` until set.

    As ``tf.config.experimental.get_device_policy``.
    """
    return context().device_policy


def set_device_policy(device_policy: str | None) -> None:
    """Say what happens to an input that is on another device than the operation.

    As ``tf.config.experimental.set_device_policy``. Once the runtime is initialized, only for the calling
    thread.

    Args:
        device_policy: ``"silent"`` (copy), ``"silent_for_int32"`` (copy only int32), ``"warn"`` (copy and say
            so), ``"explicit"`` (an error), or ``None`` for the first.

    Raises:
        ValueError: Another value.
    """
    context().device_policy = device_policy


def get_synchronous_execution() -> bool:
    """Return the flag of ``set_synchronous_execution``; on until it is set."""
    return context().synchronous_execution


def set_synchronous_execution(enable: bool | None) -> None:
    """Keep TensorFlow's flag for asynchronous execution; here every call returns when its work is done."""
    context().synchronous_execution = True if enable is None else bool(enable)


def tensor_float_32_execution_enabled() -> bool:
    """Return the flag of ``enable_tensor_float_32_execution``; on until it is set."""
    return context().tensor_float_32


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Keep TensorFlow's flag for the rounding of float32 products on some GPUs; NumPy does not round so.

    Raises:
        TypeError: Neither true nor false.
    """
    check_truth(enabled)
    context().tensor_float_32 = bool(enabled)


def enable_op_determinism() -> None:
    """Keep TensorFlow's flag for operations with the same result every time. It cannot be taken back."""
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
