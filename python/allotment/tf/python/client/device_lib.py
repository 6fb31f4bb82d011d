"""``device_lib.list_local_devices``: the devices of this machine, for TensorFlow 1 programs.

Source: docs/spec/device-config-api.md, section 10.
"""

import random
from dataclasses import dataclass, field
from typing import Any, Final

from allotment.devices.context import context
from allotment.devices.names import short_name
from allotment.devices.sessions import session_plans
from allotment.tf.graph.options.device_options import CPU_MEMORY, options_of

#: Generator of the random numbers that identify the devices of a process.
_incarnations: Final = random.SystemRandom()


@dataclass
class DeviceLocality:
    """The position of a device in the machine. As TensorFlow's message of this name."""

    bus_id: int = 0
    numa_node: int = 0

    def __str__(self) -> str:
        return f"bus_id: {self.bus_id}\n" if self.bus_id else ""


@dataclass
class DeviceAttributes:
    """Name, type and memory limit (bytes) of a device. As TensorFlow's message of this name."""

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
    """Return the CPU and the GPUs with their limits, as a session would have them, without reserving memory.

    Args:
        session_config: A ``ConfigProto``; by default the settings of ``tf.config``.

    Raises:
        TypeError: ``session_config`` is not a ``ConfigProto``.
        OpError: The configuration requires devices that do not exist.
    """
    made = []
    for plan in session_plans(context(), options_of(session_config)):
        limit = CPU_MEMORY if plan.limit is None else plan.limit.nbytes
        name, where = short_name(plan.kind, plan.index), plan.physical.description
        locality = DeviceLocality() if plan.kind == "CPU" else DeviceLocality(1)
        made.append(DeviceAttributes(name, plan.kind, limit, locality, _incarnations.getrandbits(63), where))
    return made


__all__ = ["DeviceAttributes", "DeviceLocality", "list_local_devices"]
