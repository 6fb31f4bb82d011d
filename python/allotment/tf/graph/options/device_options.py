"""Devices of sessions: the options that concern them, and the description that a session gives of each."""

from typing import Final, NamedTuple

from allotment.devices.sessions import SessionOptions
from allotment.tf.graph.options.config_proto import ConfigProto

#: The memory limit of the CPU that sessions report, in bytes.
CPU_MEMORY: Final = 256 << 20


class DeviceAttributes(NamedTuple):
    """A device as ``Session.list_devices`` describes it."""

    name: str
    device_type: str
    memory_limit_bytes: int
    incarnation: int


def options_of(config: ConfigProto | None) -> SessionOptions | None:
    """Return the options of a session that concern devices.

    Raises:
        TypeError: Something else than options.
    """
    if config is None:
        return None
    if not isinstance(config, ConfigProto):
        raise TypeError(f"session_config must be a tf.ConfigProto, but got {type(config).__name__!r}")
    gpu = config.gpu_options
    counts = config.device_count
    return SessionOptions(
        cpus=counts.get("CPU", 1),
        gpus=counts.get("GPU"),
        visible=gpu.visible_device_list,
        growth=gpu.allow_growth,
        fraction=gpu.per_process_gpu_memory_fraction,
        splits=[list(each.memory_limit_mb) for each in gpu.experimental.virtual_devices],
        allocator=gpu.allocator_type,
        fragmentation=gpu.experimental.internal_fragmentation_fraction,
        without_effect=config.without_effect(),
    )


__all__ = ["CPU_MEMORY", "DeviceAttributes", "options_of"]
