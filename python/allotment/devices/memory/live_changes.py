"""Changes to logical devices while they are in use, beyond TensorFlow: limit, growth, giving memory back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from allotment._core import Pool, format_size, parse_size, show_value
from allotment.devices.context import context
from allotment.devices.device_tuples import LogicalDevice
from allotment.devices.environment.variables import FORCE_GROWTH
from allotment.devices.limits.growth import Growth
from allotment.devices.logical import LogicalDeviceRuntime
from allotment.devices.memory.figures import find_device
from allotment.devices.options.flags import as_bool
from allotment.devices.plan import Limit

_SET_BY_LIMIT = "allotment.experimental.set_memory_limit"
_SET_BY_GROWTH = "allotment.experimental.set_memory_growth"


def set_limit(devices: Sequence[LogicalDeviceRuntime], device: Any, size: Any, *, trim: bool) -> None:
    """Change the limit of a logical device, which must not be below what stays reserved.

    Raises:
        ValueError: No such device, or it has no pool; the size is out of range, with the other logical
            devices more than the GPU has, or below what stays reserved.
        TypeError: The size is neither a whole number nor a text.
    """
    found, pool = with_pool(devices, device)
    nbytes = parse_size(size)
    # Two threads that raise limits of one GPU must not both count the other's limit of before.
    with context().lock:
        _check_room(devices, found, size, nbytes)
        limit, before = Limit(nbytes, _SET_BY_LIMIT), found.plan.limit
        pool.set_limit(nbytes, trim=trim, limit_set_by=_SET_BY_LIMIT)
        found.plan = replace(found.plan, limit=limit)
    if before is not None and before.computed:
        context().report(
            f"{found.name}, limit",
            f"{_SET_BY_LIMIT} replaces the limit of {found.short_name}: {format_size(nbytes)}, where "
            f"{before.set_by} set {format_size(before.nbytes)}.",
        )


def _check_room(
    devices: Sequence[LogicalDeviceRuntime], device: LogicalDeviceRuntime, size: Any, nbytes: int
) -> None:
    """Check that a new limit leaves the other logical devices of the GPU their limits.

    Raises:
        ValueError: It does not.
    """
    gpu = device.physical.gpu
    if gpu is None:
        return
    others = sum(
        other.plan.limit.nbytes
        for other in devices
        if other is not device and other.physical is device.physical and other.plan.limit is not None
    )
    if nbytes + others > gpu.memory:
        room = gpu.memory - others
        raise ValueError(
            f"A memory limit of {show_value(size)} for {device.name} is above the {format_size(room)} "
            f"({room} bytes) that {device.physical.device.name} has beside its other logical "
            "devices"
        )


def set_growth(devices: Sequence[LogicalDeviceRuntime], device: Any, enable: Any) -> None:
    """Turn growth of a logical device on or off, for later reservations.

    Raises:
        ValueError: No such device, or it has no pool.
        TypeError: ``enable`` is neither a bool nor a whole number.
    """
    found, pool = with_pool(devices, device)
    on = as_bool(enable)
    with context().lock:
        pool.set_growth(on)
        found.plan = replace(found.plan, growth=Growth(on, _SET_BY_GROWTH))
    forced = context().settings.force_growth
    if found.kind == "GPU" and forced is not None and forced != on:
        context().report(
            f"{found.name}, growth",
            f"{_SET_BY_GROWTH} turns growth of {found.short_name} {'on' if on else 'off'}, although "
            f"{FORCE_GROWTH.name} is {str(forced).lower()}: the variable decides at the start alone.",
        )


def trim(devices: Sequence[LogicalDeviceRuntime], device: Any) -> int:
    """Release the wholly free regions of a device, or of all devices for ``None``; return their bytes.

    Raises:
        ValueError: No such device, or it has no pool.
    """
    if device is not None:
        return with_pool(devices, device)[1].trim()
    # Several logical CPUs share a pool.
    return sum(pool.trim() for pool in {one.pool for one in devices} if pool is not None)


def with_pool(devices: Sequence[LogicalDeviceRuntime], device: Any) -> tuple[LogicalDeviceRuntime, Pool]:
    """Find a logical device, given as such or by its name, and its pool.

    Raises:
        ValueError: No device name, no such device or several of them, or the device has no pool.
        TypeError: Neither a logical device nor a text.
    """
    found = find_device(devices, device.name if isinstance(device, LogicalDevice) else device)
    if found.pool is None:
        raise ValueError(f"{found.name} has no pool: its memory is the process's own")
    return found, found.pool
