"""Warnings about options that have no effect, or another than the program may expect: each is worth one line.

All functions yield pairs of a key, for which the context warns once, and a sentence.
"""

from collections.abc import Iterator, Sequence

from allotment._core import format_size, machine_memory, show_text
from allotment.devices.configuration import Configuration
from allotment.devices.environment.settings import not_honoured
from allotment.devices.environment.variables import CPU_POOL, CPU_POOL_LIMIT, FORCE_GROWTH, SYSTEM_RESERVE
from allotment.devices.limits.growth import configured_growth, dropped_growth, overridden_growth
from allotment.devices.limits.sizes import GRANULE
from allotment.devices.limits.splits import splits_of
from allotment.devices.logical import LogicalDeviceRuntime
from allotment.devices.physical import Physical

Warnings = Iterator[tuple[str, str]]

#: The functions that set limits and growth beyond TensorFlow.
_SET_LIMIT = "allotment.experimental.set_memory_limit"
_SET_GROWTH = "allotment.experimental.set_memory_growth"


def growth_warnings(configuration: Configuration) -> Warnings:
    """Warn if ``TF_FORCE_GPU_ALLOW_GROWTH`` cannot be read, or changes the program's growth."""
    unusable = configuration.settings.unusable_force_growth
    if unusable is not None:
        configured = any(
            configured_growth(configuration, gpu.device).on for gpu in configuration.visible_gpus
        )
        yield (
            f"{FORCE_GROWTH.name}, unusable",
            f"The {FORCE_GROWTH.name} environment variable is set but could not be parsed: "
            f'"{show_text(unusable)}". Valid values are "true" or "false". '
            f"Using original config value of {configured:d}.",
        )
    original = overridden_growth(configuration)
    if original is not None:
        yield (
            f"{FORCE_GROWTH.name}, overriding",
            f"Overriding orig_value setting because the {FORCE_GROWTH.name} environment variable is set. "
            f"Original config value was {original:d}.",
        )


def overridden_options(configuration: Configuration) -> Warnings:
    """Warn of options that have no effect because of others."""
    for sentence in _overridden(configuration):
        yield sentence, sentence


def start_warnings(configuration: Configuration, devices: Sequence[LogicalDeviceRuntime]) -> Warnings:
    """Warn of all options that have no effect, once the logical devices exist."""
    yield from growth_warnings(configuration)
    if dropped := dropped_growth(configuration):
        names = ", ".join(device.name for device in dropped)
        yield (
            "dropped growth",
            f"Memory growth of {names} has no effect, because logical devices are configured: each takes "
            f"its whole limit at first use. {_SET_GROWTH} allows both.",
        )
    if configuration.visible_gpus:
        for name, text in configuration.settings.not_honoured.items():
            yield name, not_honoured(name, text)
    yield from overridden_options(configuration)
    yield from _more_than_machine(devices)
    for device in devices:
        yield from _limit_warnings(device, configuration.settings.system_reserve)


def session_option_warnings(names: Sequence[str]) -> Warnings:
    """Warn of options of sessions that are kept and do nothing."""
    for name in names:
        why = ": NumPy has threads of its own" if "threads" in name or "thread_pool" in name else ""
        yield name, f"{name} is set, and has no effect here{why}."


def _more_than_machine(devices: Sequence[LogicalDeviceRuntime]) -> Warnings:
    """Warn of simulated GPUs that may take more memory together than the machine has."""
    limits = sum(
        device.plan.limit.nbytes
        for device in devices
        if device.plan.limit is not None and device.physical.gpu is not None and device.physical.gpu.simulated
    )
    machine = machine_memory()
    if machine is not None and limits > machine:
        yield (
            "machine",
            f"The simulated GPUs may use {format_size(limits)} together, and this machine has "
            f"{format_size(machine)} of memory. An allocation that the machine has no memory for is refused; with "
            "smaller sizes in ALLOTMENT_SIMULATED_GPUS, or lower limits, a device's own limit refuses it first.",
        )


def _limit_warnings(device: LogicalDeviceRuntime, reserve: int | None) -> Warnings:
    """Yield warnings: a limit too small for any request, a reserve larger than the GPU."""
    gpu, limit = device.physical.gpu, device.plan.limit
    if gpu is None or limit is None:
        return
    if limit.nbytes < GRANULE:
        yield (
            f"{device.name}, without memory",
            f"Nothing can be allocated on {device.short_name}: its limit is {limit.nbytes} bytes, set by "
            f"{limit.set_by}. The smallest limit that serves a request is {GRANULE} bytes.",
        )
    if reserve is not None and reserve > gpu.memory:
        yield (
            SYSTEM_RESERVE.name,
            f"{SYSTEM_RESERVE.name} has no effect on {device.physical.device.name}: it asks for "
            f"{reserve >> 20} MiB to be left alone, and there are {gpu.memory >> 20} MiB.",
        )


def _overridden(configuration: Configuration) -> Iterator[str]:
    settings = configuration.settings
    if settings.cpu_pool_limit != CPU_POOL_LIMIT.default and not settings.cpu_pool:
        yield f"{CPU_POOL_LIMIT.name} has no effect: the CPU has a pool only with {CPU_POOL.name}=true."
    for gpu in configuration.visible_gpus:
        yield from _overridden_limits(configuration, gpu)
        set_to, asked = configuration.experimental_growth.get(gpu.device), configuration.growth[gpu.device]
        if set_to is not None and asked is not None and bool(asked) != set_to:
            yield _no_effect(
                f"set_memory_growth({bool(asked)})", gpu, f"{_SET_GROWTH}({set_to}) sets its growth"
            )


def _overridden_limits(configuration: Configuration, gpu: Physical) -> Iterator[str]:
    assert gpu.gpu is not None
    reserve, fraction = configuration.settings.system_reserve, configuration.process_fraction
    share = f"{configuration.fraction_set_by}({fraction})"
    if splits_of(configuration, gpu):
        if reserve is not None:
            yield _no_effect(SYSTEM_RESERVE.name, gpu, "its logical devices have limits of their own")
    elif gpu.device in configuration.experimental_limits:
        why = f"{_SET_LIMIT} sets its limit"
        if reserve is not None:
            yield _no_effect(SYSTEM_RESERVE.name, gpu, why)
        if fraction:
            yield _no_effect(share, gpu, why)
    elif fraction and reserve is not None and reserve <= gpu.gpu.memory:
        yield _no_effect(share, gpu, f"{SYSTEM_RESERVE.name} sets its limit, as in TensorFlow")


def _no_effect(option: str, gpu: Physical, why: str) -> str:
    return f"{option} has no effect on {gpu.device.name}: {why}."
