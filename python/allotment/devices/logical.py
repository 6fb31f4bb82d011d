"""Logical devices: what programs address, each GPU's with a pool of its own."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from allotment._core import HostMemory, OpenClSharedMemory, Pool, format_size
from allotment.devices.device_tuples import LogicalDevice, LogicalIndex, PhysicalDevice
from allotment.devices.environment import settings as environment
from allotment.devices.environment.settings import Settings
from allotment.devices.environment.variables import CPU_POOL, CPU_POOL_LIMIT
from allotment.devices.limits.elastic import ELASTIC_SETTING, PAGE_SIZE
from allotment.devices.limits.growth import Growth
from allotment.devices.names import full_name, short_name
from allotment.devices.physical import Gpu, Physical
from allotment.devices.plan import FREE_MEMORY, WHOLE_GPU, Kind, Limit, LogicalPlan
from allotment.errors import AlreadyExistsError

if TYPE_CHECKING:
    from allotment.arrays.library import ArrayLibrary

#: Memory of a device that its pools share.
SharedMemory = HostMemory | OpenClSharedMemory

#: TensorFlow's name for the CPU's pool.
CPU_POOL_NAME = "bfc_cpu_allocator_for_gpu"


@dataclass(slots=True, eq=False)
class LogicalDeviceRuntime:
    """A logical device of this process. Two are equal if they are the same object."""

    #: The plan it was created from, with its limit and growth and what set them.
    plan: LogicalPlan
    #: The pool of its memory; ``None`` for the CPU, unless the environment asks for a pool.
    pool: Pool | None
    #: The array library of its values; ``None`` for NumPy's arrays, in the pool's memory or in NumPy's own.
    library: "ArrayLibrary | None" = None
    #: ``/job:localhost/replica:0/task:0/device:GPU:0``.
    name: str = field(init=False)
    #: ``/device:GPU:0``.
    short_name: str = field(init=False)
    #: ``"CPU"`` or ``"GPU"``.
    kind: Kind = field(init=False)
    #: Index among the logical devices of its kind.
    index: LogicalIndex = field(init=False)
    #: The device it is on.
    physical: Physical = field(init=False)

    def __post_init__(self) -> None:
        plan = self.plan
        self.kind, self.index, self.physical = plan.kind, plan.index, plan.physical
        self.name = full_name(plan.kind, plan.index)
        self.short_name = short_name(plan.kind, plan.index)

    @property
    def shares_memory(self) -> bool:
        """Whether other libraries get the memory of its values itself and not a copy, as those of the device do."""
        gpu = self.physical.gpu
        return gpu is not None and not gpu.simulated

    def computes(self) -> bool:
        """Whether kernels can run on the device; the first look at a real GPU imports CuPy.

        If they cannot, a warning says so, once for each reason: what has no device of its own runs on the CPU.
        """
        if self.library is None or self.library.fault is None:
            return True
        _warn_of_fault(self.library.fault)
        return False

    @property
    def logical_device(self) -> LogicalDevice:
        """The named tuple that callers hold."""
        return LogicalDevice(self.short_name, self.kind)


@dataclass(slots=True)
class CreatedDevices:
    """The logical GPUs and pools of the process so far, which its sessions and eager operations share."""

    #: Logical GPUs by index: the first session or operation decides on limit and growth.
    gpus: dict[int, LogicalDeviceRuntime] = field(default_factory=dict)
    #: The memory of each GPU, which its logical devices share: one cannot reserve what another has reserved.
    memories: dict[PhysicalDevice, SharedMemory] = field(default_factory=dict)
    cpu_pool: Pool | None = None


def make_devices(
    plans: Iterable[LogicalPlan], settings: Settings, created: CreatedDevices | None = None
) -> tuple[LogicalDeviceRuntime, ...]:
    """Make logical devices and their pools. Nothing is reserved before the first allocation.

    A GPU that the process has ``made`` stays as it is.

    Raises:
        AlreadyExistsError: That one is on another physical GPU.
    """
    created = CreatedDevices() if created is None else created
    if settings.cpu_pool and created.cpu_pool is None:
        created.cpu_pool = _make_cpu_pool(settings)
    return tuple(
        _cpu(plan, settings, created) if plan.kind == "CPU" else _gpu(plan, settings, created)
        for plan in plans
    )


def _cpu(plan: LogicalPlan, settings: Settings, created: CreatedDevices) -> LogicalDeviceRuntime:
    if created.cpu_pool is None:
        return LogicalDeviceRuntime(plan, None)
    growth = Growth(True, f"always, with {CPU_POOL.name}")
    return LogicalDeviceRuntime(replace(plan, limit=_cpu_limit(settings), growth=growth), created.cpu_pool)


def _gpu(plan: LogicalPlan, settings: Settings, created: CreatedDevices) -> LogicalDeviceRuntime:
    """Return the logical device of a plan: an earlier one with the same pool, or a new one."""
    found = created.gpus.get(plan.index)
    if found is None:
        pool = _make_gpu_pool(plan, settings, created.memories)
        found = LogicalDeviceRuntime(plan, pool, _library_of(plan.physical, pool))
        created.gpus[plan.index] = found
    elif found.physical != plan.physical:
        raise AlreadyExistsError(
            None,
            None,
            f"TensorFlow device (GPU:{plan.index}) is being mapped to multiple devices "
            f"({plan.physical.device.name.rpartition(':')[2]} now, and "
            f"{found.physical.device.name.rpartition(':')[2]} previously), which is not supported. This may be the "
            "result of providing different GPU configurations (ConfigProto.gpu_options, for example different "
            "visible_device_list) when creating multiple Sessions in the same process. This is not currently "
            "supported.",
        )
    else:
        _report_late(plan, found.plan)
    return found


def _make_cpu_pool(settings: Settings) -> Pool:
    # As TensorFlow's: always growing, and free regions stay.
    return Pool(
        settings.cpu_pool_limit,
        growth=True,
        source="host",
        trim_on_oom=False,
        joins_regions=False,
        name=CPU_POOL_NAME,
        limit_set_by=_cpu_limit(settings).set_by,
        guard=settings.guard,
        collect_garbage=settings.collect_garbage,
        owner_tags=settings.owner_tags,
        policy=settings.pool_policy,
    )


def _cpu_limit(settings: Settings) -> Limit:
    given = CPU_POOL_LIMIT.name in settings.texts
    return Limit(
        settings.cpu_pool_limit, CPU_POOL_LIMIT.name if given else f"default of {CPU_POOL_LIMIT.name}"
    )


def _make_gpu_pool(
    plan: LogicalPlan, settings: Settings, memories: dict[PhysicalDevice, SharedMemory]
) -> Pool:
    """Make the pool of a logical GPU, over memory of a simulated GPU, of a device of OpenCL, or of a real GPU."""
    assert plan.physical.gpu is not None
    assert plan.limit is not None
    assert plan.growth is not None
    gpu = plan.physical.gpu
    source: SharedMemory | str
    if gpu.has_host_memory:
        if plan.physical.device not in memories:
            memories[plan.physical.device] = _shared_memory(gpu)
        source = memories[plan.physical.device]
    else:
        # Only mapped memory has pages.
        source = f"{'cuda-vmm' if plan.elastic else 'cuda'}:{gpu.hardware_index}"
    return Pool(
        # A limit below 1 MiB counts as 0 in TensorFlow: such a device exists and can allocate nothing. A pool
        # has a limit of 1 at least, and 1 is less than a granule.
        max(plan.limit.nbytes, 1),
        growth=plan.growth.on,
        source=source,
        trim_on_oom=settings.trim_on_oom,
        joins_regions=None if plan.elastic else False,
        fragmentation_fraction=plan.fragmentation,
        name=f"GPU_{plan.index}_bfc",
        limit_set_by=plan.limit.set_by,
        # Only memory of this process can be guarded.
        guard=settings.guard and gpu.has_host_memory,
        collect_garbage=settings.collect_garbage,
        owner_tags=settings.owner_tags,
        policy=settings.pool_policy,
        elastic=plan.elastic,
        page_size=PAGE_SIZE if plan.elastic else None,
    )


def _shared_memory(gpu: Gpu) -> SharedMemory:
    if gpu.opencl is not None:
        return gpu.opencl.shared_memory(gpu.memory)
    return HostMemory(gpu.memory, within_machine=True)


def _library_of(physical: Physical, pool: Pool) -> "ArrayLibrary | None":
    """Return what computes on a GPU: CuPy on a real one, which is imported at the first look at it."""
    gpu = physical.gpu
    assert gpu is not None
    if gpu.has_host_memory:
        return None
    # Not before: most machines have no GPU.
    from allotment.arrays.cupy import CupyLibrary

    return CupyLibrary(pool, gpu.hardware_index, gpu.pci_bus_id)


@functools.cache
def _warn_of_fault(fault: str) -> None:
    """Warn that nothing computes on a real GPU, once for each reason."""
    environment.warn(
        f"Operations do not run on real GPUs: {fault}. What may run elsewhere runs on the CPU. "
        "CUDA_VISIBLE_DEVICES=-1 hides real GPUs."
    )


def _report_late(wanted: LogicalPlan, first: LogicalPlan) -> None:
    """Warn of options that have no effect because the GPU's pool exists. Defaults need no warning."""
    assert wanted.limit is not None
    assert first.limit is not None
    assert wanted.growth is not None
    assert first.growth is not None
    before = f"no effect on GPU:{wanted.index}: its pool was made earlier in this process, with"
    if wanted.growth.on and not first.growth.on:
        environment.warn(f"{wanted.growth.set_by} has {before} growth off.")
    if wanted.limit.nbytes != first.limit.nbytes and wanted.limit.set_by not in (WHOLE_GPU, FREE_MEMORY):
        environment.warn(
            f"{wanted.limit.set_by}, which means {format_size(wanted.limit.nbytes)}, has {before} a limit of "
            f"{format_size(first.limit.nbytes)} ({first.limit.set_by})."
        )
    if wanted.fragmentation not in (0, first.fragmentation):
        environment.warn(
            f"gpu_options.experimental.internal_fragmentation_fraction = {wanted.fragmentation} has {before} "
            f"{first.fragmentation}."
        )
    if wanted.elastic and not first.elastic:
        environment.warn(f"{ELASTIC_SETTING} has {before} memory that is not elastic.")
