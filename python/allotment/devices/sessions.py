"""The devices of a session: its own list of logical devices, over the pools that the process shares."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from allotment._core import show_text, show_value
from allotment.devices.configuration import Configuration
from allotment.devices.context import Context
from allotment.devices.device_tuples import LogicalDeviceConfiguration
from allotment.devices.limits.all_gpus import read_fraction
from allotment.devices.limits.splits import check_limit
from allotment.devices.logical import LogicalDeviceRuntime, make_devices
from allotment.devices.physical import Physical
from allotment.devices.plan import LogicalPlan, plan_devices
from allotment.devices.start_warnings import growth_warnings, overridden_options, session_option_warnings
from allotment.errors import InvalidArgumentError

#: Names of options in messages.
_FRACTION: Final = "gpu_options.per_process_gpu_memory_fraction"
_SPLITS: Final = "gpu_options.experimental.virtual_devices"


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The fields of a session's ``ConfigProto`` about devices."""

    #: Number of logical CPUs.
    cpus: int = 1
    #: The most GPUs to use; ``None`` for all.
    gpus: int | None = None
    #: Physical GPUs in the order of their logical numbers, with commas; empty for all.
    visible: str = ""
    growth: bool = False
    #: Share of each GPU's memory; 0 for TensorFlow's rule.
    fraction: float = 0.0
    #: Limits in MiB of the logical devices on each visible GPU.
    splits: Sequence[Sequence[float]] = ()
    allocator: str = ""
    #: From this share of the limit on, a chunk is split and the rest kept; 0 for TensorFlow's rule.
    fragmentation: float = 0.0
    #: Names of other fields that are set, and have no effect.
    without_effect: Sequence[str] = ()


def session_devices(context: Context, options: SessionOptions | None) -> tuple[LogicalDeviceRuntime, ...]:
    """Make the devices of a session; without options they are those of ``config``. The context stays as it is.

    Raises:
        OpError: The options ask for devices that do not exist.
    """
    if options is None:
        # Without the lock: it may log.
        context.state()
        with context.lock:
            if context.is_ready:
                return context.ready().devices
            return _made(context, context.assemble())
    context.report_all(session_option_warnings(options.without_effect))
    configuration = _configured(context.state().configuration, options)
    context.report_all(growth_warnings(configuration))
    context.report_all(overridden_options(configuration))
    with context.lock:
        return _made(context, configuration)


def session_plans(context: Context, options: SessionOptions | None) -> tuple[LogicalPlan, ...]:
    """Plan the devices of a session as ``session_devices`` would, and make none.

    Raises:
        OpError: The options ask for devices that do not exist.
    """
    if options is not None:
        return tuple(plan_devices(_configured(context.state().configuration, options)))
    context.state()
    with context.lock:
        if context.is_ready:
            return tuple(device.plan for device in context.ready().devices)
        return tuple(plan_devices(context.assemble()))


def _made(context: Context, configuration: Configuration) -> tuple[LogicalDeviceRuntime, ...]:
    return make_devices(plan_devices(configuration), configuration.settings, context.created)


def _configured(process: Configuration, options: SessionOptions) -> Configuration:
    """Return the configuration of a session: the settings of the process, changed by the session's options."""
    configuration = Configuration(process.settings, process.physical)
    cpu, gpus = configuration.physical[0], list(configuration.gpus)
    configuration.splits[cpu.device] = [LogicalDeviceConfiguration()] * max(options.cpus, 0)
    if not gpus:
        # As in TensorFlow: options about GPUs are not even checked.
        return configuration
    if options.allocator not in ("", "BFC"):
        raise InvalidArgumentError(
            None,
            None,
            f"Invalid allocator type: {show_text(options.allocator)}\ngpu_options.allocator_type must be 'BFC', or "
            "empty, which is the same.",
        )
    try:
        read_fraction(options.fraction, _FRACTION)
        for limit in itertools.chain.from_iterable(options.splits):
            check_limit(limit, f"{_SPLITS}.memory_limit_mb")
    except ValueError as error:
        raise InvalidArgumentError(None, None, f"{error}.") from None
    chosen = _chosen(configuration, options.visible)
    if options.gpus is not None:
        chosen = chosen[: max(options.gpus, 0)]
    configuration.visible = [cpu.device, *(gpu.device for gpu in chosen)]
    configuration.keeps_order = True
    configuration.session_growth = options.growth
    configuration.process_fraction = options.fraction
    configuration.visible_set_by = "gpu_options.visible_device_list, or device_count,"
    configuration.splits_set_by = _SPLITS
    configuration.fragmentation = options.fragmentation
    configuration.fraction_set_by = _FRACTION
    # No field of a ConfigProto says it.
    configuration.experimental_elastic = dict(process.experimental_elastic)
    if len(options.splits) > len(chosen):
        raise InvalidArgumentError(
            None,
            None,
            f"{_SPLITS} has {len(options.splits)} entries for {len(chosen)} visible "
            "GPUs; give one for each GPU.",
        )
    for gpu, limits in zip(chosen, options.splits, strict=False):
        if limits:
            configuration.splits[gpu.device] = [LogicalDeviceConfiguration(limit) for limit in limits]
    return configuration


def _chosen(configuration: Configuration, visible: str) -> list[Physical]:
    """Return the GPUs of a ``visible_device_list``, in its order."""
    gpus = list(configuration.gpus)
    shown = show_text(visible)
    if not visible:
        return gpus
    chosen: list[Physical] = []
    for entry in visible.split(","):
        try:
            number = int(entry)
        except ValueError:
            raise InvalidArgumentError(
                None,
                None,
                f"Could not parse entry in 'visible_device_list': '{show_text(entry)}'. visible_device_list = {shown}",
            ) from None
        if not 0 <= number < len(gpus):
            text = (
                f"'visible_device_list' listed an invalid Device id '{show_value(number)}' but visible device count is "
                f"{len(gpus)}"
            )
            why = configuration.why_gpus_are_absent()
            raise InvalidArgumentError(None, None, f"{text}\n{why}" if why else text)
        if gpus[number] in chosen:
            raise InvalidArgumentError(
                None, None, f"visible_device_list contained a duplicate entry: {shown}"
            )
        chosen.append(gpus[number])
    return chosen


__all__ = ["SessionOptions", "session_devices", "session_plans"]
