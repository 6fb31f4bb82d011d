"""What sessions say of placement: the devices they have, and where each node goes (placement, section 6.3)."""

from collections.abc import Iterable, Mapping, Sequence

from allotment.devices import placement_log
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.tf.graph.nodes.node import Operation, SymbolicTensor


def mapping(devices: Sequence[Device]) -> None:
    """Say which logical devices are on which hardware."""
    known = [device for device in devices if device.kind == "GPU"]
    lines = [f"{device.name} -> {device.physical.description}" for device in known]
    placement_log.said(
        "\n".join(["Device mapping:", *lines]) if lines else "Device mapping: no known devices."
    )


def nodes(
    operations: Iterable[Operation],
    placed: Mapping[Operation, Device],
    fetched: Sequence[SymbolicTensor] = (),
) -> None:
    """Say where nodes go: bare on stdout, and to the logger.

    ``fetched`` are those of a graph that is placed in parts: what takes them out is a node, too.
    """
    for operation in operations:
        _node(operation.name, operation.type, placed[operation])
    for number, tensor in enumerate(fetched):
        name = f"_retval_{tensor.op.name}_{tensor.value_index}_{number}"
        _node(name, "_Retval", placed[tensor.op])


def _node(name: str, kind: str, device: Device) -> None:
    line = f"{name}: ({kind}): {device.name}"
    print(line, flush=True)
    placement_log.said(line)


__all__ = ["mapping", "nodes"]
