"""What the program asked for, device by device, before it is made into logical devices."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from allotment.devices.physical import Physical
from allotment.devices.settings import Settings
from allotment.devices.values import LogicalDeviceConfiguration, PhysicalDevice


@dataclass(slots=True)
class Configuration:
    """Everything that logical devices are made from. Only the setters of this package change it."""

    settings: Settings
    #: What exists, the CPU first; never changes.
    physical: tuple[Physical, ...]
    #: Devices to use, in the order they were given, perhaps with repetitions.
    visible: list[PhysicalDevice] = field(init=False)
    #: Logical devices of a physical one: the caller's own list, so later changes to it are seen, as in
    #: TensorFlow.
    splits: dict[PhysicalDevice, Sequence[LogicalDeviceConfiguration]] = field(default_factory=dict)
    #: Memory growth of every GPU, as it was given; ``None`` until it is set.
    growth: dict[PhysicalDevice, Any] = field(init=False)
    #: Memory growth through ``allotment.experimental``, which goes with splits and may differ between GPUs.
    own_growth: dict[PhysicalDevice, bool] = field(default_factory=dict)
    #: Limits through ``allotment.experimental``, in bytes.
    own_limits: dict[PhysicalDevice, int] = field(default_factory=dict)
    #: Growth and share of memory of all GPUs, as ``config.gpu`` sets them; a share of 0 is TensorFlow's rule.
    process_growth: bool = False
    process_fraction: float = 0.0
    #: What asked for that share, for people.
    fraction_set_by: str = "config.gpu.set_per_process_memory_fraction"
    #: What asked for logical devices, for people.
    splits_set_by: str = "logical device configuration"
    #: Share of a limit from which on the rest of a split is kept, as a session's options say it.
    fragmentation: float = 0.0
    #: Growth of all GPUs as a session's options say it, which goes with splits; ``None`` outside of sessions.
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
        """The GPUs that are used, by index and not in the order they were given, as in TensorFlow; but see above."""
        if self.keeps_order:
            return tuple(
                self.require(device) for device in self.visible if self.require(device).gpu is not None
            )
        return tuple(gpu for gpu in self.gpus if gpu.device in self.visible)

    def require(self, device: Any) -> Physical:
        """Find a device that a caller named; an equal tuple is as good.

        Raises:
            ValueError: There is no such device.
        """
        for physical in self.physical:
            if physical.device == device:
                return physical
        raise ValueError(f"Unrecognized device: {device!r}")
