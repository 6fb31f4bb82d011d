"""Options that another one overrides, in sentences: each is worth one warning."""

from collections.abc import Iterator

from allotment.devices.configuration import Configuration
from allotment.devices.environment.variables import CPU_POOL, CPU_POOL_LIMIT, SYSTEM_RESERVE
from allotment.devices.limits.splits import splits_of
from allotment.devices.physical import Physical

#: The function that sets limits and growth beyond TensorFlow.
_OWN_LIMIT = "allotment.experimental.set_memory_limit"
_OWN_GROWTH = "allotment.experimental.set_memory_growth"


def overridden_options(configuration: Configuration) -> Iterator[str]:
    """Say which options have no effect because of others."""
    settings = configuration.settings
    if settings.cpu_pool_limit != CPU_POOL_LIMIT.default and not settings.cpu_pool:
        yield f"{CPU_POOL_LIMIT.name} has no effect: the CPU has a pool only with {CPU_POOL.name}=true."
    for gpu in configuration.visible_gpus:
        yield from _overridden_limits(configuration, gpu)
        own, asked = configuration.experimental_growth.get(gpu.device), configuration.growth[gpu.device]
        if own is not None and asked is not None and bool(asked) != own:
            yield _no_effect(
                f"set_memory_growth({bool(asked)})", gpu, f"{_OWN_GROWTH}({own}) sets its growth"
            )


def _overridden_limits(configuration: Configuration, gpu: Physical) -> Iterator[str]:
    assert gpu.gpu is not None
    reserve, fraction = configuration.settings.system_reserve, configuration.process_fraction
    share = f"{configuration.fraction_set_by}({fraction})"
    if splits_of(configuration, gpu):
        if reserve is not None:
            yield _no_effect(SYSTEM_RESERVE.name, gpu, "its logical devices have limits of their own")
    elif gpu.device in configuration.experimental_limits:
        by_own = f"{_OWN_LIMIT} sets its limit"
        if reserve is not None:
            yield _no_effect(SYSTEM_RESERVE.name, gpu, by_own)
        if fraction:
            yield _no_effect(share, gpu, by_own)
    elif fraction and reserve is not None and reserve <= gpu.gpu.memory:
        yield _no_effect(share, gpu, f"{SYSTEM_RESERVE.name} sets its limit, as in TensorFlow")


def _no_effect(option: str, gpu: Physical, why: str) -> str:
    return f"{option} has no effect on {gpu.device.name}: {why}."
