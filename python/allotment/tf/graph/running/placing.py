"""Chooses the devices of nodes in a session."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from allotment import errors
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.context import context
from allotment.devices.names import DeviceName, parse, parse_runtime_slashes
from allotment.devices.placement import faults_of
from allotment.tf.graph.nodes.errors import graph_error
from allotment.tf.graph.nodes.node import Operation
from allotment.tf.ops.faults import no_kernel
from allotment.tf.ops.table import CPU_ONLY
from allotment.tf.ops.types.type_checks import type_problem
from allotment.tf.tensors.dtype import string

#: Operations that read only the shape of their input: they run on its device.
_METADATA = frozenset({"Shape", "ShapeN", "Size", "Rank"})


def is_generator(operation: Operation) -> bool:
    """Whether a node makes one tensor of nothing: constants, placeholders, variables."""
    return not operation._inputs and len(operation._outputs) == 1


def in_log_order(operations: Iterable[Operation]) -> list[Operation]:
    """Sort nodes in the order of TensorFlow's placement log: generators last."""
    found = list(operations)
    return [each for each in found if not is_generator(each)] + [each for each in found if is_generator(each)]


def place(operations: Sequence[Operation], devices: Sequence[Device], soft: bool) -> dict[Operation, Device]:
    """Choose a device for each node: requests, colocation, then the best device; generators go to their consumers.

    Raises:
        InvalidArgumentError: No device meets a request that may not be dropped, or requests of colocated nodes
            contradict each other.
    """
    groups = _groups(operations)
    placed: dict[Operation, Device] = {}
    candidates: dict[Operation, list[Device]] = {}
    consumers: dict[Operation, list[Operation]] = {}
    for operation in operations:
        _check_kernel(operation)
        for tensor in operation._inputs:
            consumers.setdefault(tensor._op, []).append(operation)
    generators = []
    for operation in in_log_order(operations):
        root, members = groups[operation]
        if root not in candidates:
            candidates[root] = _candidates(operation, members, devices, soft)
        if is_generator(operation) and len(members) == 1:
            generators.append(operation)
        elif root in placed:
            placed[operation] = placed[root]
        else:
            placed[root] = placed[operation] = _follow(operation, placed, candidates[root])
    for operation in generators:
        usable = candidates[groups[operation][0]]
        places = {id(placed[each]): placed[each] for each in consumers.get(operation, ()) if each in placed}
        near = next(iter(places.values())) if len(places) == 1 else None
        placed[operation] = near if near in usable and near is not None else usable[0]
    return placed


def _check_kernel(operation: Operation) -> None:
    problem = type_problem(operation._row, [tensor._dtype for tensor in operation._inputs])
    if problem is not None and problem.kind == "no kernel":
        text = no_kernel(operation.type, operation.name, problem)
        raise graph_error(
            errors.InvalidArgumentError, operation, f"No OpKernel was registered to support Op {text}"
        )


def _follow(operation: Operation, placed: dict[Operation, Device], usable: list[Device]) -> Device:
    """Return the device of a node whose group has none: its input's for operations that read only shapes."""
    if operation.type in _METADATA and operation._inputs:
        near = placed.get(operation._inputs[0]._op)
        if near in usable and near is not None:
            return near
    return usable[0]


def _groups(operations: Sequence[Operation]) -> dict[Operation, tuple[Operation, list[Operation]]]:
    """Map each node to the representative of its group and to the nodes of the group, which share a device."""
    known = set(operations)
    parent: dict[Operation, Operation] = {}

    def find(operation: Operation) -> Operation:
        while (above := parent.get(operation)) is not None:
            operation = above
        return operation

    for operation in operations:
        ties = (
            operation._colocated
            if operation._variable is None
            else (*operation._colocated, operation._variable)
        )
        for other in ties:
            if other not in known:
                continue
            one, two = find(operation), find(other)
            if one is not two:
                first, second = (one, two) if one._number < two._number else (two, one)
                parent[second] = first
    members: dict[Operation, list[Operation]] = {}
    roots = {operation: find(operation) for operation in operations}
    for operation, root in roots.items():
        members.setdefault(root, []).append(operation)
    return {operation: (root, members[root]) for operation, root in roots.items()}


def kinds_of(operation: Operation) -> tuple[str, ...]:
    """Return the kinds of device with a kernel for a node; texts have kernels on CPUs only."""
    tensors = (*operation._inputs, *operation._outputs)
    return CPU_ONLY if any(tensor._dtype is string for tensor in tensors) else operation._row.kinds


def _candidates(
    operation: Operation, members: list[Operation], devices: Sequence[Device], soft: bool
) -> list[Device]:
    """Return the devices that suit a group, the best first."""
    request = DeviceName()
    for member in members:
        request = _merged(request, _request_of(member), member, members, soft)
    kinds = [kind for kind in ("GPU", "CPU") if all(kind in kinds_of(member) for member in members)]
    requests = [request, replace(request, kind=None, index=None)] if soft else [request]
    for each in requests:
        found = [
            device
            for kind in kinds
            for device in devices
            if device.kind == kind and each.matches(parse(device.name)) and device.computes()
        ]
        if found:
            return found
    raise _refusal(operation, members, request, devices)


def _request_of(operation: Operation) -> DeviceName:
    name = parse_runtime_slashes(operation._device)
    if name is None:
        text = f"Malformed device specification '{operation._device}' in node: {{{{node {operation._name}}}}}"
        raise graph_error(errors.InvalidArgumentError, operation, text)
    return name


def _merged(
    request: DeviceName, other: DeviceName, operation: Operation, members: list[Operation], soft: bool
) -> DeviceName:
    """Return a device request that satisfies two requests of colocated operations, or raise their conflict."""
    parts = ("job", "replica", "task", "kind", "index")
    conflict = [
        part
        for part in parts
        if None not in (getattr(request, part), getattr(other, part))
        and getattr(request, part) != getattr(other, part)
    ]
    if not conflict:
        return request.merged_with(other)
    if soft and not {"job", "replica", "task"} & set(conflict):
        return request
    first = members[0]._name
    what = "types" if "kind" in conflict else "ids"
    text = (
        f"Cannot colocate nodes {{{{colocation_node {operation._name}}}}} and {{{{colocation_node {first}}}}}: "
        f"Cannot merge devices with incompatible {what}: '{other.to_string()}' and '{request.to_string()}'"
    )
    raise graph_error(errors.InvalidArgumentError, operation, text)


def _refusal(
    operation: Operation, members: list[Operation], request: DeviceName, devices: Sequence[Device]
) -> errors.InvalidArgumentError:
    name = operation._name
    requester = next((each for each in (operation, *members) if each._device), operation)
    matching = [device for device in devices if request.matches(parse(device.name))]
    if matching:
        kinds = " ".join(dict.fromkeys(device.kind for device in matching))
        why = (
            f"Could not satisfy explicit device specification '{requester._device}' because no supported kernel for "
            f"{kinds} devices is available."
        )
        text = f"Cannot assign a device for operation {name}: {why}{faults_of(matching)}"
    else:
        available = ", ".join(device.name for device in devices)
        text = (
            f"Cannot assign a device for operation {name}: {{{{node {name}}}}} was explicitly assigned to "
            f"{requester._device} but available devices are [ {available} ]. Make sure the device specification refers "
            "to a valid device."
        )
        if request.kind == "GPU" and (why := context().state().configuration.why_gpus_are_absent()):
            text += f"\n{why}"
    return graph_error(errors.InvalidArgumentError, operation, text, f"[[{name}]]")


__all__ = ["in_log_order", "is_generator", "place"]
