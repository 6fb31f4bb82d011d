"""Logs of sessions: their devices, and the device of each node."""

from collections.abc import Iterable, Mapping, Sequence

from allotment.devices import placement_log
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.tf.graph.nodes.node import Operation, SymbolicTensor


def mapping(devices: Sequence[Device]) -> None:
    """Log the hardware of each logical device."""
    known = [device for device in devices if device.kind == "GPU"]
    lines = [f"{device.name} -> {device.physical.description}" for device in known]
    placement_log.log_line(
        "\n".join(["Device mapping:", *lines]) if lines else "Device mapping: no known devices."
    )


def nodes(
    operations: Iterable[Operation],
    placed: Mapping[Operation, Device],
    fetched: Sequence[SymbolicTensor] = (),
) -> None:
    """Log the devices of nodes, to stdout and to the logger.

    Args:
        operations: The nodes.
        placed: The device of each.
        fetched: Fetched tensors of a graph that is placed in parts; each has a node that returns it.
    """
    for operation in operations:
        _node(operation.name, operation.type, placed[operation])
    for number, tensor in enumerate(fetched):
        name = f"_retval_{tensor.op.name}_{tensor.value_index}_{number}"
        _node(name, "_Retval", placed[tensor.op])


def _node(name: str, kind: str, device: Device) -> None:
    line = f"{name}: ({kind}): {device.name}"
    print(line, flush=True)
    placement_log.log_line(line)


__all__ = ["mapping", "nodes"]
