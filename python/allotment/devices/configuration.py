"""The settings of devices, from which logical devices are made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from allotment._core import show_value
from allotment.devices.device_tuples import LogicalDeviceConfiguration, PhysicalDevice
from allotment.devices.environment.settings import Settings
from allotment.devices.environment.variables import VISIBLE_DEVICES
from allotment.devices.messages.device_errors import expected_device, explained
from allotment.devices.physical import Physical, hardware


@dataclass(slots=True)
class Configuration:
    """All settings that logical devices are made from. Only the setters of this package change it."""

    settings: Settings
    #: The physical devices, the CPU first; never changes.
    physical: tuple[Physical, ...]
    #: Devices to use, in the order they were given, perhaps with repetitions.
    visible: list[PhysicalDevice] = field(init=False)
    #: The setting that hides the other devices, for messages.
    visible_set_by: str = "set_visible_devices"
    #: Logical devices of a physical one: the caller's list itself, whose later changes count, as in TensorFlow.
    splits: dict[PhysicalDevice, Sequence[LogicalDeviceConfiguration]] = field(default_factory=dict)
    #: Memory growth of every GPU, as the caller passed it; ``None`` until it is set.
    growth: dict[PhysicalDevice, Any] = field(init=False)
    #: Memory growth through ``allotment.experimental``, which goes with splits and may differ between GPUs.
    experimental_growth: dict[PhysicalDevice, bool] = field(default_factory=dict)
    #: Limits through ``allotment.experimental``, in bytes.
    experimental_limits: dict[PhysicalDevice, int] = field(default_factory=dict)
    #: Whether pools are elastic, through ``allotment.experimental``.
    experimental_elastic: dict[PhysicalDevice, bool] = field(default_factory=dict)
    #: Growth and share of memory of all GPUs, as ``config.gpu`` sets them; a share of 0 is TensorFlow's rule.
    process_growth: bool = False
    process_fraction: float = 0.0
    #: The setting of that share, for messages.
    fraction_set_by: str = "config.gpu.set_per_process_memory_fraction"
    #: The setting of logical devices, for messages.
    splits_set_by: str = "logical device configuration"
    #: From this share of the limit on, a chunk is split and the rest kept; set by a session's options.
    fragmentation: float = 0.0
    #: Growth of all GPUs by a session's options, which logical devices do not turn off; ``None`` outside of sessions.
    session_growth: bool | None = None
    #: Whether GPUs are numbered in the order of ``visible``, as in a session's list.
    keeps_order: bool = False

    def __post_init__(self) -> None:
        self.visible = [physical.device for physical in self.physical]
        self.growth = {gpu.device: None for gpu in self.gpus}

    @property
    def gpus(self) -> tuple[Physical, ...]:
        """Every GPU that exists."""
        return tuple(physical for physical in self.physical if physical.gpu is not None)

    @property
    def visible_gpus(self) -> tuple[Physical, ...]:
        """The GPUs in use: by index, as in TensorFlow, or in the order of ``visible`` if ``keeps_order``."""
        if self.keeps_order:
            return tuple(
                self.require(device) for device in self.visible if self.require(device).gpu is not None
            )
        return tuple(gpu for gpu in self.gpus if gpu.device in self.visible)

    @property
    def machine_has_gpus(self) -> bool:
        """Whether there is a GPU, hidden or not. Where there is none, TensorFlow's texts are on record."""
        return bool(hardware(self.settings))

    def why_gpus_are_absent(self) -> str:
        """Return sentences about what hides GPUs of the machine from the program; empty if nothing does."""
        return " ".join(self._reasons_for_absence())

    def _reasons_for_absence(self) -> Iterator[str]:
        total, left = len(hardware(self.settings)), len(self.gpus)
        if left < total:
            some = f"{total - left} of {total} GPUs"
            every = f"all {total} GPUs" if total > 1 else "the only GPU"
            mask = f"{VISIBLE_DEVICES.name}={show_value(self.settings.visible_devices)}"
            yield f"{mask} hides {some if left else every}."
        unused = [gpu.device.name for gpu in self.gpus if gpu.device not in self.visible]
        if unused:
            yield f"{self.visible_set_by} hides {', '.join(unused)}."

    def require(self, device: Any, *, of_many: str = "loop over it") -> Physical:
        """Find the physical device that equals a caller's value.

        Args:
            device: The caller's value.
            of_many: Advice about a list of devices, for the message.

        Raises:
            ValueError: There is no such device.
        """
        for physical in self.physical:
            if physical.device == device:
                return physical
        names = ", ".join(one.device.name for one in self.physical)
        if isinstance(device, PhysicalDevice):
            detail = f"There are: {names}. {self.why_gpus_are_absent()}".rstrip()
        else:
            instead = f"take one from list_physical_devices(), which has: {names}"
            detail = expected_device("PhysicalDevice", device, instead, of_many=of_many)
        text = f"Unrecognized device: {show_value(device)}"
        raise explained(ValueError, text, detail, recorded=not self.machine_has_gpus)


class Change(NamedTuple):
    """A change of a setting, in texts for messages."""

    #: The setting and its device, such as ``Memory growth of /physical_device:GPU:0``.
    what: str
    now: str
    wanted: str


class ConfigurationState(Protocol):
    """A state of the runtime as setters see it: the configuration to read and, if the state allows it, to change."""

    @property
    def configuration(self) -> Configuration:
        """The configuration to read."""

    def changeable(self, refusal: str, change: Change) -> Configuration:
        """Return the configuration to change, or raise a ``RuntimeError`` that begins with ``refusal``."""
