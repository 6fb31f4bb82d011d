"""Functions on devices that TensorFlow does not have: limits, growth, scopes and trims of devices in use."""

from typing import Any

from allotment.devices import placement_log
from allotment.devices.context import context
from allotment.devices.device_tuples import LogicalDevice, PhysicalDevice
from allotment.devices.limits import elastic, growth, whole_gpu
from allotment.devices.memory import live_changes
from allotment.devices.memory.figures import find_device
from allotment.devices.memory.scopes import MemoryScope, make_scope
from allotment.devices.start_warnings import growth_warnings
from allotment.metrics import metrics_text


def set_memory_growth(device: PhysicalDevice | LogicalDevice | str, enable: bool) -> None:
    """Set whether a GPU's memory is reserved step by step, or all at first use.

    For a physical device, before the runtime is initialized. Unlike ``config.experimental.set_memory_growth`` it allows
    logical devices, each of which then grows up to its limit, and GPUs may differ. It overrides that function;
    ``TF_FORCE_GPU_ALLOW_GROWTH`` overrides both.

    For a logical device, at any time, for later reservations. Initializes the runtime.

    Raises:
        ValueError: No such device, or not a GPU.
        TypeError: ``enable`` is neither a bool nor a whole number.
        RuntimeError: A physical device, and the runtime is initialized with another value.
    """
    if isinstance(device, LogicalDevice | str):
        live_changes.set_growth(context().ready().devices, device, enable)
    else:
        context().change(growth.set_experimental_growth, device, enable)


def get_memory_growth(device: PhysicalDevice) -> bool:
    """Return whether the pools of a GPU grow, or will grow by the present settings and the environment.

    Raises:
        ValueError: No such device, or not a GPU.
    """
    configuration = context().state().configuration
    gpu = configuration.require(device)
    if gpu.gpu is None:
        raise ValueError(f"Only a GPU's memory grows, not that of {gpu.device.name}")
    context().report_all(growth_warnings(configuration))
    return growth.effective_growth(configuration, gpu.device).on


def set_memory_elastic(device: PhysicalDevice, enable: bool) -> None:
    """Set whether a GPU's memory is elastic: plentiful addresses, and memory for the pages in use only.

    Before the runtime is initialized. Each pool of the GPU then reserves several times its limit in addresses, in
    pages of 2 MiB, and refuses a request only if the pages of all allocations and its own are above the limit. Off by
    default: decisions differ from TensorFlow's then. Logical devices, growth and limits work as without it.

    Raises:
        ValueError: No such device, or not a GPU; or it is simulated, and ``ALLOTMENT_GUARD=1``.
        TypeError: ``enable`` is neither a bool nor a whole number.
        RuntimeError: The runtime is initialized with another value.
    """
    context().change(elastic.set_experimental_elastic, device, enable)


def get_memory_elastic(device: PhysicalDevice) -> bool:
    """Return whether the pools of a GPU are elastic, or will be by the present settings.

    Raises:
        ValueError: No such device, or not a GPU.
    """
    configuration = context().state().configuration
    gpu = configuration.require(device)
    if gpu.gpu is None:
        raise ValueError(f"Only a GPU's memory can be elastic, not that of {gpu.device.name}")
    return elastic.is_elastic(configuration, gpu.device)


def set_memory_limit(
    device: PhysicalDevice | LogicalDevice | str, size: int | str, *, trim: bool = False
) -> None:
    """Limit the memory used of a GPU.

    For a physical device, before the runtime is initialized: without logical devices it is the limit of the GPU's only
    one, and growth does not change. With logical devices, the sum of their limits must not exceed it.

    For a logical device, up or down, at any time, but not below what stays reserved. Initializes the runtime.

    Args:
        device: A physical GPU; or a logical device, or its name, as for ``config.experimental.get_memory_info``.
        size: Bytes, or a text such as ``"256MiB"``.
        trim: For a logical device: release wholly free regions first, if that is necessary and enough.

    Raises:
        ValueError: No such device, not a GPU, a size that is not between 1 byte and what the GPU has, or one
            below what stays reserved. Nothing changed then.
        TypeError: The size is neither a whole number nor a text.
        RuntimeError: A physical device, and the runtime is initialized with another limit.
    """
    if isinstance(device, LogicalDevice | str):
        live_changes.set_limit(context().ready().devices, device, size, trim=trim)
    else:
        context().change(whole_gpu.set_experimental_limit, device, size)


def trim(device: LogicalDevice | str | None = None) -> int:
    """Release the wholly free regions of a device's pool, or of all pools of devices; return their bytes.

    ``Pool.kept_regions`` lists the allocations that keep the others. Initializes the runtime.

    Raises:
        ValueError: No such device, or it has no pool.
    """
    return live_changes.trim(context().ready().devices, device)


def memory_scope(
    name: str,
    device: LogicalDevice | str | None = None,
    limit: int | str | None = None,
    *,
    every_thread: bool = False,
) -> MemoryScope:
    """Count what this thread allocates on a device, or on each GPU, while a ``with`` block runs.

    Scopes nest. With a ``limit``, in bytes or as a text, what the block holds on a device is capped, and an
    allocation above it is refused with the scope's name. With ``every_thread``, what all threads allocate counts,
    in scopes that they enter meanwhile, too: around ``strategy.run``, what the replicas do. Initializes the runtime.

    Raises:
        ValueError: No such device, or it has no pool; or there is no GPU.
    """
    return make_scope(context().ready().devices, name, device, limit, every_thread)


def set_log_device_copies(enabled: bool) -> None:
    """Turn the logging of copies on or off: of inputs that eager operations copy from another device.

    The lines go to the placement log. Each names the operation, the input, both devices and the bytes; lines of
    ``tf.identity`` are about copies that the program requests.
    """
    placement_log.set_logs_copies(bool(enabled))


def get_logical_device_details(device: LogicalDevice | str) -> dict[str, Any]:
    """Return the physical device, limit, growth and pool of a logical device. Initializes the runtime.

    Keys: ``physical_device``; for a GPU also ``hardware_index`` (before ``CUDA_VISIBLE_DEVICES``),
    ``memory_limit`` (bytes), ``memory_limit_set_by``, ``memory_growth``, ``memory_growth_set_by``,
    ``memory_elastic`` and ``pool``, the name of its pool.

    Args:
        device: A logical device, or its name, as for ``config.experimental.get_memory_info``.

    Raises:
        ValueError: Not a device name, no such device, or several of them.
        TypeError: Neither a logical device nor a text.
    """
    name = device.name if isinstance(device, LogicalDevice) else device
    found = find_device(context().ready().devices, name)
    gpu, limit, grows = found.physical.gpu, found.plan.limit, found.plan.growth
    details: dict[str, Any] = {"physical_device": found.physical.device}
    if gpu is not None and limit is not None and grows is not None:
        details |= {
            "hardware_index": int(gpu.hardware_index),
            "memory_limit": limit.nbytes,
            "memory_limit_set_by": limit.set_by,
            "memory_growth": grows.on,
            "memory_growth_set_by": grows.set_by,
            "memory_elastic": found.plan.elastic,
            "pool": None if found.pool is None else found.pool.name,
        }
    return details


__all__ = [
    "MemoryScope",
    "get_logical_device_details",
    "get_memory_elastic",
    "get_memory_growth",
    "memory_scope",
    "metrics_text",
    "set_log_device_copies",
    "set_memory_elastic",
    "set_memory_growth",
    "set_memory_limit",
    "trim",
]
