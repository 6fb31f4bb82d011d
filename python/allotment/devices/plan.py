"""Decides on logical devices, with their limits and growth, from the configuration; ``logical`` makes them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from allotment._core import format_size
from allotment.devices.configuration import Configuration
from allotment.devices.device_tuples import LogicalIndex
from allotment.devices.environment.variables import SYSTEM_RESERVE
from allotment.devices.limits.elastic import check_limit_of_pages, is_elastic
from allotment.devices.limits.growth import Growth, effective_growth
from allotment.devices.limits.sizes import MIB, limit_of_split, limit_of_whole_gpu, system_reserve
from allotment.devices.limits.splits import check_splits_together, splits_of
from allotment.devices.physical import Gpu, Physical
from allotment.errors import InternalError, InvalidArgumentError, NotFoundError

Kind = Literal["CPU", "GPU"]

#: The source of a limit that no setting decided.
WHOLE_GPU: Final = "all of the GPU's memory"


#: The same of a real GPU, which other processes use, too.
FREE_MEMORY: Final = "the GPU's free memory, less TensorFlow's reserve for the system"


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that the pool of a logical GPU may reserve."""

    nbytes: int
    #: The setting that decided it, for messages.
    set_by: str
    #: Whether an option about all GPUs decided it: a limit set for one device replaces it.
    computed: bool = False


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """A logical device that is to be made."""

    kind: Kind
    index: LogicalIndex
    physical: Physical
    #: ``None`` for the CPU.
    limit: Limit | None = None
    growth: Growth | None = None
    #: From this share of the limit on, a chunk is split and the rest kept; 0 is TensorFlow's rule.
    fragmentation: float = 0.0
    #: Whether the pool has memory for the pages in use only.
    elastic: bool = False


def plan_devices(configuration: Configuration) -> tuple[LogicalPlan, ...]:
    """Decide on every logical device, the CPU's first.

    Raises:
        NotFoundError: No CPU device is left.
        UnknownError: A GPU was configured to have no logical device.
        InvalidArgumentError: Configurations of GPUs do not go together, or ask for more memory than there is; or the
            limit of elastic memory is less than a page.
        InternalError: A share of memory above 1.
    """
    cpu = configuration.physical[0]
    count = len(configuration.splits.get(cpu.device, (None,))) if cpu.device in configuration.visible else 0
    if count == 0:
        raise NotFoundError(None, None, "No CPU devices are available in this process")
    cpus = (LogicalPlan("CPU", LogicalIndex(index), cpu) for index in range(count))
    return (*cpus, *_plan_gpus(configuration))


def _plan_gpus(configuration: Configuration) -> Iterator[LogicalPlan]:
    """Yield the logical GPUs in the order of their numbers."""
    check_splits_together(configuration)
    wanted: list[tuple[int, Physical, Limit]] = []
    for gpu in configuration.visible_gpus:
        limits = _limits(configuration, gpu)
        ordinals = [split.experimental_device_ordinal or 0 for split in splits_of(configuration, gpu)] or [0]
        wanted += [(ordinal, gpu, limit) for ordinal, limit in zip(ordinals, limits, strict=True)]
    # By ordinal; those of the same keep their order.
    wanted.sort(key=lambda entry: entry[0])
    for index, (_, gpu, limit) in enumerate(wanted):
        growth = effective_growth(configuration, gpu.device)
        elastic = is_elastic(configuration, gpu.device)
        if elastic:
            check_limit_of_pages(gpu.device, limit.nbytes, limit.set_by)
        yield LogicalPlan(
            "GPU", LogicalIndex(index), gpu, limit, growth, configuration.fragmentation, elastic
        )


def _limits(configuration: Configuration, physical: Physical) -> Sequence[Limit]:
    """Return the limits of a GPU's logical devices."""
    assert physical.gpu is not None
    own = configuration.experimental_limits.get(physical.device)
    splits = splits_of(configuration, physical)
    if not splits:
        if own is not None:
            return (Limit(own, "allotment.experimental.set_memory_limit"),)
        return (_limit_of_whole(configuration, physical.gpu),)
    limits = [limit_of_split(split.memory_limit or 0) for split in splits]
    room = physical.gpu.memory if own is None else own
    # TensorFlow does not check this: the device that is used last gets less than was configured. Simulated
    # memory is exact, and so are that of OpenCL, which pools share, and a limit of our own.
    if (physical.gpu.has_host_memory or own is not None) and sum(limits) > room:
        asked = " + ".join(f"{split.memory_limit}" for split in splits)
        raise InvalidArgumentError(
            None,
            None,
            f"The logical devices configured for {physical.device.name} ask for {asked} MiB of memory, but "
            f"it has {format_size(room)} ({room // MIB} MiB). Lower a memory_limit, or configure fewer.",
        )
    return [Limit(limit, configuration.splits_set_by) for limit in limits]


def _limit_of_whole(configuration: Configuration, gpu: Gpu) -> Limit:
    """Return the limit of a GPU that is not split."""
    fraction = configuration.process_fraction
    if fraction > 1 and gpu.compute_capability < (6, 0):
        raise InternalError(
            None,
            None,
            "Unified memory on GPUs with compute capability lower than 6.0 (pre-Pascal class GPUs) does not "
            f"support oversubscription.\n{configuration.fraction_set_by} is {fraction}: it must be above 0 and up to "
            "1, or 0 for TensorFlow's rule.",
        )
    if fraction > 1 and not gpu.simulated:
        raise InternalError(
            None,
            None,
            f"{configuration.fraction_set_by} is {fraction}: a share above 1 asks for unified memory, which GPU "
            f"{gpu.hardware_index} does not get here. It must be above 0 and up to 1, or 0 for TensorFlow's rule.",
        )
    override = configuration.settings.system_reserve
    free, total = gpu.memory_info()
    reserve = 0 if gpu.has_host_memory else system_reserve(free, gpu.compute_capability[0])
    nbytes = limit_of_whole_gpu(free, total, fraction=fraction, reserve=reserve, override=override)
    if override is not None and override <= free:
        return Limit(nbytes, SYSTEM_RESERVE.name, computed=True)
    if fraction:
        return Limit(nbytes, f"{configuration.fraction_set_by}({fraction})", computed=True)
    return Limit(nbytes, WHOLE_GPU if gpu.has_host_memory else FREE_MEMORY)
