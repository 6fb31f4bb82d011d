"""``tf.config``: physical and logical devices, visibility, placement, memory."""

from allotment.devices.device_tuples import LogicalDevice, LogicalDeviceConfiguration, PhysicalDevice
from allotment.tf.config import experimental, gpu, optimizer, threading
from allotment.tf.config._devices import (
    get_logical_device_configuration,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_logical_device_configuration,
    set_visible_devices,
)
from allotment.tf.config._functions import (
    experimental_functions_run_eagerly,
    experimental_run_functions_eagerly,
    functions_run_eagerly,
    get_soft_device_placement,
    run_functions_eagerly,
    set_soft_device_placement,
)
from allotment.tf.names.missing_names import refuse_other_names

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "experimental",
    "experimental_functions_run_eagerly",
    "experimental_run_functions_eagerly",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_soft_device_placement",
    "get_visible_devices",
    "gpu",
    "list_logical_devices",
    "list_physical_devices",
    "optimizer",
    "run_functions_eagerly",
    "set_logical_device_configuration",
    "set_soft_device_placement",
    "set_visible_devices",
    "threading",
]

refuse_other_names(__name__)
