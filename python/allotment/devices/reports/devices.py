"""Reports all devices of this process as one value, for ``allotment devices``."""

from dataclasses import asdict, dataclass
from typing import Any

from allotment.devices.context import Context
from allotment.devices.environment.settings import VARIABLES
from allotment.devices.logical import LogicalDeviceRuntime
from allotment.devices.physical import Physical, hardware


@dataclass(frozen=True, slots=True)
class VariableReport:
    """An environment variable that is set."""

    name: str
    text: str
    #: Its effect.
    effect: str


@dataclass(frozen=True, slots=True)
class MaskReport:
    """The GPUs that ``CUDA_VISIBLE_DEVICES`` leaves."""

    #: Its text; ``None``: unset.
    text: str | None
    #: GPUs in the hardware's own list.
    hardware_gpus: int
    #: Indices there of the GPUs left, in the order of the text.
    left: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PhysicalReport:
    """A physical device. Amounts are bytes; ``None`` where only a GPU has it."""

    name: str
    device_type: str
    #: Whether the program uses it.
    visible: bool
    device_name: str | None = None
    hardware_index: int | None = None
    uuid: str | None = None
    memory: int | None = None
    simulated: bool | None = None


@dataclass(frozen=True, slots=True)
class LogicalReport:
    """A logical device. Amounts are bytes; ``None`` where only a GPU, or a device with a pool, has it."""

    name: str
    device_type: str
    physical_device: str
    memory_limit: int | None
    memory_limit_set_by: str | None
    memory_growth: bool | None
    memory_growth_set_by: str | None
    memory_elastic: bool | None
    pool: str | None
    in_use: int | None
    peak_in_use: int | None
    reserved: int | None


@dataclass(frozen=True, slots=True)
class DevicesReport:
    """The devices of a process, and the settings behind them."""

    environment: tuple[VariableReport, ...]
    mask: MaskReport
    physical: tuple[PhysicalReport, ...]
    logical: tuple[LogicalReport, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as nested dictionaries, for JSON."""
        return asdict(self)


def report_devices(context: Context) -> DevicesReport:
    """Report the devices of a context. Makes the runtime ready, but reserves no memory.

    Raises:
        ValueError: The environment cannot be used.
    """
    configuration = context.state().configuration
    settings = configuration.settings
    return DevicesReport(
        environment=tuple(
            VariableReport(variable.name, settings.texts[variable.name], variable.effect)
            for variable in VARIABLES
            if variable.name in settings.texts
        ),
        mask=MaskReport(
            settings.visible_devices,
            len(hardware(settings)),
            tuple(int(gpu.gpu.hardware_index) for gpu in configuration.gpus if gpu.gpu is not None),
        ),
        physical=tuple(
            _report_physical(physical, visible=physical.device in configuration.visible)
            for physical in configuration.physical
        ),
        logical=tuple(_report_logical(device) for device in context.ready().devices),
    )


def _report_physical(physical: Physical, *, visible: bool) -> PhysicalReport:
    device, gpu = physical.device, physical.gpu
    if gpu is None:
        return PhysicalReport(device.name, device.device_type, visible)
    return PhysicalReport(
        device.name,
        device.device_type,
        visible,
        gpu.card,
        int(gpu.hardware_index),
        gpu.identifier,
        gpu.memory,
        gpu.simulated,
    )


def _report_logical(device: LogicalDeviceRuntime) -> LogicalReport:
    """Return the report of a logical device."""
    limit, growth = device.plan.limit, device.plan.growth
    stats = None if device.pool is None else device.pool.stats()
    return LogicalReport(
        name=device.short_name,
        device_type=device.kind,
        physical_device=device.physical.device.name,
        memory_limit=None if limit is None else limit.nbytes,
        memory_limit_set_by=None if limit is None else limit.set_by,
        memory_growth=None if growth is None else growth.on,
        memory_growth_set_by=None if growth is None else growth.set_by,
        memory_elastic=device.plan.elastic if device.kind == "GPU" else None,
        pool=None if device.pool is None else device.pool.name,
        in_use=None if stats is None else stats.in_use,
        peak_in_use=None if stats is None else stats.peak_in_use,
        reserved=None if stats is None else stats.reserved,
    )
