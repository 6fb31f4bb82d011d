"""Logical devices: what programs address, each GPU's with a pool of its own."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from allotment._core import HostMemory, Pool
from allotment.devices.names import full_name, short_name
from allotment.devices.physical import Physical
from allotment.devices.plan import Kind, LogicalPlan
from allotment.devices.settings import Settings
from allotment.devices.values import LogicalDevice, LogicalIndex, PhysicalDevice

#: TensorFlow's name for the CPU's pool.
CPU_POOL_NAME = "bfc_cpu_allocator_for_gpu"


@dataclass(slots=True, eq=False)
class LogicalDeviceRuntime:
    """A logical device of this process. Two are equal if they are the same object."""

    #: What it was made from, with its limit and growth and what set them.
    plan: LogicalPlan
    #: Where its memory comes from; ``None`` for the CPU, unless the environment asks for a pool.
    pool: Pool | None
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
    def logical_device(self) -> LogicalDevice:
        """What callers hold of it."""
        return LogicalDevice(self.short_name, self.kind)


def make_devices(plans: Iterable[LogicalPlan], settings: Settings) -> tuple[LogicalDeviceRuntime, ...]:
    """Make logical devices and their pools. Nothing is reserved before the first allocation."""
    cpu_pool = _make_cpu_pool(settings) if settings.cpu_pool else None
    memories: dict[PhysicalDevice, HostMemory] = {}
    return tuple(
        LogicalDeviceRuntime(
            plan, cpu_pool if plan.kind == "CPU" else _make_gpu_pool(plan, settings, memories)
        )
        for plan in plans
    )


def _make_cpu_pool(settings: Settings) -> Pool:
    # As TensorFlow's: always growing, and free regions stay.
    return Pool(
        settings.cpu_pool_limit,
        growth=True,
        source="host",
        trim_on_oom=False,
        joins_regions=False,
        name=CPU_POOL_NAME,
        guard=settings.guard,
    )


def _make_gpu_pool(plan: LogicalPlan, settings: Settings, memories: dict[PhysicalDevice, HostMemory]) -> Pool:
    assert plan.physical.gpu is not None
    assert plan.limit is not None
    assert plan.growth is not None
    # One for all logical devices of a GPU: what one has reserved, the others cannot.
    memory = memories.setdefault(plan.physical.device, HostMemory(plan.physical.gpu.memory))
    return Pool(
        # A limit below 1 MiB counts as 0 in TensorFlow: such a device exists and can allocate nothing. A pool
        # has a limit of 1 at least, and 1 is less than a granule.
        max(plan.limit.nbytes, 1),
        growth=plan.growth.on,
        source=memory,
        trim_on_oom=settings.trim_on_oom,
        joins_regions=False,
        name=f"GPU_{plan.index}_bfc",
        limit_set_by=plan.limit.set_by,
        guard=settings.guard,
    )
