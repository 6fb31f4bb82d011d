"""The environment, read once: the only reader of ``os.environ``.

The first question about devices reads it, and not the import, into one frozen value that is passed down. The logger
``allotment.settings`` reports once each text that cannot be used, and each later change that would have mattered.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from allotment._core import show_value
from allotment.devices.environment import variables
from allotment.devices.environment.variables import OpenClRequest, Policy, Variable

_T = TypeVar("_T")
_logger = logging.getLogger("allotment.settings")

#: Every variable that is read.
VARIABLES: Final[tuple[Variable[Any], ...]] = (
    variables.SIMULATED_GPUS,
    variables.OPENCL_DEVICES,
    variables.VISIBLE_DEVICES,
    variables.CUDA_DRIVER,
    variables.FORCE_GROWTH,
    variables.TRIM_ON_OOM,
    variables.SYSTEM_RESERVE,
    variables.CPU_POOL,
    variables.CPU_POOL_LIMIT,
    variables.LOG_LEVEL,
    variables.GUARD,
    variables.COLLECT_GARBAGE,
    variables.OWNER_TAGS,
    variables.RECORD,
    variables.RECORD_EVENTS,
    variables.RECORD_STACKS,
    variables.POOL_POLICY,
    variables.REPLICA_DEADLINE,
    variables.TF_CONFIG,
)

#: TensorFlow's variables that change how much memory a GPU's programs get, and that nothing here obeys.
ALLOCATOR: Final = "TF_GPU_ALLOCATOR"
NOT_HONOURED: Final = (ALLOCATOR, "TF_PER_DEVICE_MEMORY_LIMIT_MB")

#: The allocators that TensorFlow has beside its pool.
ALLOCATORS: Final = ("cuda_malloc", "cuda_malloc_async", "memory_guard")


@dataclass(frozen=True, slots=True)
class Settings:
    """The values of all variables. Amounts are bytes."""

    #: The texts as they were read; variables that were unset are absent.
    texts: Mapping[str, str]
    #: Memory of each simulated GPU; ``None``: list real ones.
    simulated_gpus: tuple[int, ...] | None
    #: The devices of OpenCL that are the GPUs; none: simulated or real GPUs are.
    opencl_devices: tuple[OpenClRequest, ...]
    #: The text of ``CUDA_VISIBLE_DEVICES``; ``None``: all GPUs.
    visible_devices: str | None
    #: Growth of every GPU; ``None``: the program decides.
    force_growth: bool | None
    #: Whether a GPU's pool hands wholly free regions back before it refuses.
    trim_on_oom: bool
    #: Memory of a GPU to leave alone, or ``None``: the device's own rule.
    system_reserve: int | None
    #: Whether the CPU has a pool.
    cpu_pool: bool
    #: The most that the CPU's pool may reserve.
    cpu_pool_limit: int
    #: From 1 on, placement lines on stderr are hidden.
    log_level: int
    #: Whether pools find overruns and writes after a free.
    guard: bool
    #: Whether Python's collector runs before memory is refused; ``None``: unless the program has disabled it.
    collect_garbage: bool | None
    #: Whether the pools of devices record the operation and the line that made each allocation.
    owner_tags: bool
    #: How the pools of devices split chunks.
    pool_policy: Policy
    #: Seconds without progress of any replica after which a step ends; ``None``: never.
    replica_deadline: float | None
    #: The number of workers of a cluster that ``TF_CONFIG`` describes.
    tf_config_workers: int | None
    #: The texts of variables of ``NOT_HONOURED`` that ask for something.
    not_honoured: Mapping[str, str] = field(default_factory=dict)
    #: Whether the program simulates GPUs itself, so that ``ALLOTMENT_SIMULATED_GPUS`` has no effect.
    simulated_by_program: bool = False

    @property
    def unusable_force_growth(self) -> str | None:
        """The text of ``TF_FORCE_GPU_ALLOW_GROWTH`` if it cannot be used, which is reported at the start."""
        return self.texts.get(variables.FORCE_GROWTH.name) if self.force_growth is None else None


def read_settings(
    environ: Mapping[str, str] | None = None, *, simulated_gpus: tuple[int, ...] | None = None
) -> Settings:
    """Read every variable, and report the texts that cannot be used.

    Args:
        environ: Pairs to read instead of the environment.
        simulated_gpus: Memory of each simulated GPU, instead of what the environment says.

    Raises:
        ValueError: ``ALLOTMENT_SIMULATED_GPUS``, ``ALLOTMENT_OPENCL_DEVICES``, ``ALLOTMENT_GUARD``,
            ``ALLOTMENT_OWNER_TAGS`` or ``ALLOTMENT_COLLECT_GARBAGE`` cannot be used; or both of the first ask for GPUs.
    """
    source = os.environ if environ is None else environ
    texts = {variable.name: source[variable.name] for variable in VARIABLES if variable.name in source}
    by_program = simulated_gpus is not None
    settings = Settings(
        texts=texts,
        simulated_gpus=simulated_gpus if by_program else _read(texts, variables.SIMULATED_GPUS),
        # What a program simulates, it simulates whatever the environment says.
        opencl_devices=() if by_program else _read(texts, variables.OPENCL_DEVICES),
        visible_devices=_read(texts, variables.VISIBLE_DEVICES),
        force_growth=_read(texts, variables.FORCE_GROWTH),
        trim_on_oom=_read(texts, variables.TRIM_ON_OOM),
        system_reserve=_read(texts, variables.SYSTEM_RESERVE),
        cpu_pool=_read(texts, variables.CPU_POOL),
        cpu_pool_limit=_read(texts, variables.CPU_POOL_LIMIT),
        log_level=_read(texts, variables.LOG_LEVEL),
        guard=_read(texts, variables.GUARD),
        collect_garbage=_read(texts, variables.COLLECT_GARBAGE),
        owner_tags=_read(texts, variables.OWNER_TAGS),
        pool_policy=_read(texts, variables.POOL_POLICY),
        replica_deadline=_read(texts, variables.REPLICA_DEADLINE),
        tf_config_workers=_read(texts, variables.TF_CONFIG),
        not_honoured={name: source[name] for name in NOT_HONOURED if source.get(name, "0") not in ("", "0")},
        simulated_by_program=by_program,
    )
    if settings.simulated_gpus and settings.opencl_devices:
        simulated, opencl = (
            f"{variable.name}={show_value(texts[variable.name])}"
            for variable in (variables.SIMULATED_GPUS, variables.OPENCL_DEVICES)
        )
        raise ValueError(f"{simulated} and {opencl} both say what the GPUs are. Unset one of them.")
    # After everything could be read: an error is met again at the next question, and no warning twice.
    for variable in VARIABLES:
        if variable is not variables.FORCE_GROWTH and not variable.strict:
            _report_unusable(variable, texts.get(variable.name))
    return settings


def late_changes(settings: Settings, environ: Mapping[str, str] | None = None) -> Iterable[tuple[str, str]]:
    """Yield each variable whose meaning has changed since it was read, with a sentence that says so."""
    source = os.environ if environ is None else environ
    without_effect = (
        (variables.SIMULATED_GPUS, variables.OPENCL_DEVICES) if settings.simulated_by_program else ()
    )
    for variable in VARIABLES:
        was, now = settings.texts.get(variable.name), source.get(variable.name)
        if was == now or variable in without_effect:
            continue
        if _meaning(variable, was) != _meaning(variable, now):
            yield (
                variable.name,
                f"{variable.name} changed from {_shown(was)} to {_shown(now)} too late: it was read at the "
                "first question about devices, and what was read then stays in force. Set it before that.",
            )


def not_honoured(name: str, text: str) -> str:
    """Return a sentence: a variable of ``NOT_HONOURED`` has no effect."""
    sentence = f"{name}={show_value(text)} has no effect here"
    if name != ALLOCATOR:
        return f"{sentence}: it is TensorFlow's alone."
    known = ", ".join(ALLOCATORS)
    if text not in ALLOCATORS:
        return f"{sentence}, and names none of TensorFlow's allocators ({known}). Every GPU has a pool: unset it."
    guard = " ALLOTMENT_GUARD=1 finds overruns." if text == "memory_guard" else ""
    return f"{sentence}: of TensorFlow's allocators ({known}) there is none. Every GPU has a pool: unset it.{guard}"


def warn(text: str) -> None:
    """Log a warning about the environment or the options."""
    _logger.warning("%s", text)


def _read(texts: Mapping[str, str], variable: Variable[_T]) -> _T:
    text = texts.get(variable.name)
    if text is None:
        return variable.default
    try:
        return variable.read(text)
    except ValueError as error:
        if variable.strict:
            raise ValueError(_unusable(variable, text, str(error))) from None
        return variable.default


def _report_unusable(variable: Variable[Any], text: str | None) -> None:
    if text is None:
        return
    try:
        variable.read(text)
    except ValueError:
        default = "it counts as unset"
        warn(_unusable(variable, text, default))


def _unusable(variable: Variable[Any], text: str, reason: str) -> str:
    return f"{variable.name}={show_value(text)} cannot be used: {reason}. Accepted: {variable.accepted}."


def _meaning(variable: Variable[Any], text: str | None) -> object:
    if text is None:
        return variable.default
    try:
        return variable.read(text)
    except ValueError:
        # Equal to no other: that the text is useless, too, is worth saying.
        return object()


def _shown(text: str | None) -> str:
    return "unset" if text is None else show_value(text)
