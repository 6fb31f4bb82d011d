"""``list_local_devices``: the devices of this machine, as programs for TensorFlow 1 ask for them."""

import random
from dataclasses import dataclass, field
from typing import Any, Final

from allotment.devices.context import context
from allotment.devices.names import short_name
from allotment.devices.sessions import session_plans
from allotment.tf.graph.options.device_options import CPU_MEMORY, options_of

#: What tells devices of one process from those of another.
_incarnations: Final = random.SystemRandom()


@dataclass
class DeviceLocality:
    """Where a device is in the machine."""

    bus_id: int = 0
    numa_node: int = 0

    def __str__(self) -> str:
        return f"bus_id: {self.bus_id}\n" if self.bus_id else ""


@dataclass
class DeviceAttributes:
    """A device. As TensorFlow's message of this name."""

    name: str = ""
    device_type: str = ""
    memory_limit: int = 0
    locality: DeviceLocality = field(default_factory=DeviceLocality)
    incarnation: int = 0
    physical_device_desc: str = ""
    xla_global_id: int = -1

    def __str__(self) -> str:
        locality = "".join(f"  {line}\n" for line in str(self.locality).splitlines())
        text = (
            f'name: "{self.name}"\ndevice_type: "{self.device_type}"\nmemory_limit: {self.memory_limit}\n'
            f"locality {{\n{locality}}}\nincarnation: {self.incarnation}\n"
        )
        if self.physical_device_desc:
            text += f'physical_device_desc: "{self.physical_device_desc}"\n'
        return f"{text}xla_global_id: {self.xla_global_id}\n"

    __repr__ = __str__


def list_local_devices(session_config: Any = None) -> list[DeviceAttributes]:
    """Return the CPU and the GPUs with their limits, as a session would have them; no memory is reserved.

    Args:
        session_config: A ``ConfigProto``; without one what ``tf.config`` says holds.

    Raises:
        TypeError: Something else.
        OpError: It asks for devices that do not exist.
    """
    made = []
    for plan in session_plans(context(), options_of(session_config)):
        limit = CPU_MEMORY if plan.limit is None else plan.limit.nbytes
        name, where = short_name(plan.kind, plan.index), plan.physical.description
        locality = DeviceLocality() if plan.kind == "CPU" else DeviceLocality(1)
        made.append(DeviceAttributes(name, plan.kind, limit, locality, _incarnations.getrandbits(63), where))
    return made


__all__ = ["DeviceAttributes", "DeviceLocality", "list_local_devices"]
