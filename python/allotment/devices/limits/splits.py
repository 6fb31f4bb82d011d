"""Logical device configurations: one physical device split into several logical ones."""

import numbers
from collections.abc import Sequence
from typing import Any

from allotment._core import show_text, show_value
from allotment.devices.configuration import Change, Configuration, ConfigurationState
from allotment.devices.device_tuples import LogicalDeviceConfiguration
from allotment.devices.limits.sizes import MOST_MIB
from allotment.devices.physical import Physical
from allotment.errors import InvalidArgumentError, UnknownError


def stored_splits(state: ConfigurationState, device: Any) -> Sequence[LogicalDeviceConfiguration] | None:
    """Return the object that the program configured for a device, or ``None``.

    Raises:
        ValueError: The device does not exist.
    """
    configuration = state.configuration
    return configuration.splits.get(configuration.require(device).device)


def set_splits(state: ConfigurationState, device: Any, splits: Any) -> None:
    """Configure the logical devices of a physical one (device-config API, section 5.6).

    Raises:
        ValueError: The device does not exist, or an element has a field that its type of device does not allow, or
            lacks one that it requires.
        TypeError: ``splits`` is no sequence.
        AttributeError: An element is no configuration.
        RuntimeError: The runtime is ready and has another configuration.
    """
    physical = state.configuration.require(device)
    for split in splits:
        if physical.gpu is None:
            _check_cpu_split(split)
        elif split.memory_limit is None:
            raise ValueError("Setting memory limit is required for GPU virtual devices")
    if state.configuration.splits.get(physical.device) == splits:
        return
    refusal = "Virtual devices cannot be modified after being initialized"
    stored = state.configuration.splits.get(physical.device)
    change = Change(
        f"Logical devices of {physical.device.name}",
        "one, which was not configured," if stored is None else _mapping(stored),
        _mapping(splits),
    )
    state.changeable(refusal, change).splits[physical.device] = splits


def _mapping(splits: Sequence[LogicalDeviceConfiguration]) -> str:
    """Return configured logical devices as a short text: ``[100 MiB, 200 MiB]``."""
    return show_text(f"[{', '.join(map(_describe, splits))}]")


def _describe(split: LogicalDeviceConfiguration) -> str:
    words = "no limit" if split.memory_limit is None else f"{show_value(split.memory_limit)} MiB"
    if split.experimental_priority is not None:
        words += f" priority {show_value(split.experimental_priority)}"
    if split.experimental_device_ordinal is not None:
        words += f" ordinal {show_value(split.experimental_device_ordinal)}"
    return words


def _check_cpu_split(split: Any) -> None:
    if split.memory_limit is not None:
        raise ValueError("Setting memory limit on CPU virtual devices is currently not supported")
    # The double spaces are TensorFlow's.
    if split.experimental_priority is not None:
        raise ValueError("Setting experimental_priority on CPU virtual  devices is currently not supported")
    if split.experimental_device_ordinal is not None:
        raise ValueError(
            "Setting experimental_device_ordinal on CPU virtual  devices is currently not supported"
        )


def splits_of(configuration: Configuration, physical: Physical) -> Sequence[LogicalDeviceConfiguration]:
    """Return the configured logical devices of a device; empty if there are none."""
    return configuration.splits.get(physical.device, ())


def check_splits(configuration: Configuration) -> None:
    """Check each GPU's logical device configurations by themselves.

    Raises:
        ValueError: Some logical devices of a GPU have a priority or an ordinal, and some have none.
        TypeError: A limit is no number.
        ValueError: A limit is no number of MiB that there can be.
    """
    for gpu in configuration.visible_gpus:
        splits = splits_of(configuration, gpu)
        if len(_priorities(splits)) not in (0, len(splits)):
            raise ValueError("priority must be specified for all virtual devices")
        if len(_ordinals(splits)) not in (0, len(splits)):
            raise ValueError("device_ordinals must be specified for all virtual devices")
        for split in splits:
            check_limit(split.memory_limit, f"memory_limit of {gpu.device.name}")


def check_limit(mib: Any, field: str) -> None:
    """Check the limit of a logical device, in MiB. A limit below 1 makes a device without memory.

    Raises:
        TypeError: It is no number; a bool is none.
        ValueError: It is negative, not finite, or more bytes than can be counted.
    """
    accepted = f"{field} must be a number of MiB, such as 1024"
    if isinstance(mib, bool) or not isinstance(mib, numbers.Real):
        raise TypeError(f"{accepted}, not {show_value(mib)} of type {type(mib).__name__}")
    # As a single, in which TensorFlow keeps it, 2**43 less a half is 2**43. NaN is not below anything.
    if not -1 < mib < MOST_MIB:  # type: ignore[operator]
        raise ValueError(f"{accepted}: 0 or more, and less than 2**43, not {show_value(mib)}")


def check_splits_together(configuration: Configuration) -> None:
    """Check the GPUs' logical device configurations against each other, as TensorFlow's runtime does at the start.

    Only if any device is configured, the CPU included. The others are compared with the first GPU (GPU memory,
    section 7.2).

    Raises:
        UnknownError: Fewer logical devices than GPUs: a GPU was configured to have none.
        InvalidArgumentError: A share of memory is set, too, or GPUs differ in having priorities or ordinals,
            or a priority is out of range.
    """
    gpus = configuration.visible_gpus
    if not configuration.splits or not gpus:
        return
    if configuration.session_growth is not None and not any(splits_of(configuration, gpu) for gpu in gpus):
        # A session's: its CPUs are always configured, and do not count.
        return
    if configuration.process_fraction > 0:
        raise _invalid("It's invalid to set per_process_gpu_memory_fraction when virtual_devices is set.")
    # A GPU without a configuration counts as one device, one with an empty list as none.
    wanted = sum(len(configuration.splits.get(gpu.device, (None,))) for gpu in gpus)
    if wanted < len(gpus):
        raise UnknownError(
            None,
            None,
            "Not enough GPUs to create virtual devices. "
            f"num_gpus_to_use: {wanted} #virtual_devices: {len(gpus)}",
        )
    first = splits_of(configuration, gpus[0])
    for number, gpu in enumerate(gpus):
        _check_against_first(first, number, gpu, splits_of(configuration, gpu))


def _check_against_first(
    first: Sequence[LogicalDeviceConfiguration],
    number: int,
    gpu: Physical,
    splits: Sequence[LogicalDeviceConfiguration],
) -> None:
    """Check that the splits of a GPU set the same options as those of the first GPU."""
    assert gpu.gpu is not None
    if bool(_ordinals(splits)) != bool(_ordinals(first)):
        raise _invalid(
            "Device ordinals must be set for all virtual devices or none. But the device_ordinal is "
            f"specified for {number if _ordinals(splits) else 0} while other devices didn't have any set."
        )
    priorities = _priorities(splits)
    if priorities and not _priorities(first):
        raise _invalid(
            "Priority must be set for all virtual devices or none. But the priority is specified for "
            f"{number} while previous devices didn't have any set."
        )
    if _priorities(first) and len(priorities) != len(splits):
        raise _invalid(
            "Priority must be set for all virtual devices or none. Number of virtual device priorities "
            f"specified for {number}: {len(priorities)}, number of memory limits: {len(splits)}."
        )
    if not priorities:
        return
    greatest, least = gpu.gpu.stream_priorities()
    for priority in priorities:
        if not greatest <= priority <= least:
            raise _invalid(
                f"Priority {show_value(priority)} is outside the range of supported priorities "
                f"[{greatest},{least}] for virtual device on GPU {gpu.index}"
            )


def _priorities(splits: Sequence[LogicalDeviceConfiguration]) -> list[int]:
    return [split.experimental_priority for split in splits if split.experimental_priority is not None]


def _ordinals(splits: Sequence[LogicalDeviceConfiguration]) -> list[int]:
    return [
        split.experimental_device_ordinal for split in splits if split.experimental_device_ordinal is not None
    ]


def _invalid(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, text)
