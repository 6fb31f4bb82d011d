"""Programs: parts of graphs made ready to run, as lists of calls on numbered arrays.

Each tensor has a slot in a list of arrays. A step calls a function with the arrays of some slots, puts the results in
others, and empties the slots that no later step needs. Consecutive steps in one device's memory form a segment, which
enters that memory once instead of at each step.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.tf.graph.nodes.errors import graph_error
from allotment.tf.graph.nodes.node import Operation, SymbolicTensor, variable_read
from allotment.tf.graph.running.kernels import kernel
from allotment.tf.graph.running.ordering import needed, ordered
from allotment.tf.graph.running.state import State
from allotment.tf.ops import faults
from allotment.tf.ops.executor import (
    copying,
    fault_of,
    kernel_memory,
    reads_in_place,
    result_memory,
    runs_on_host,
    value_memory,
)
from allotment.tf.ops.table import Host, same_shapes

#: Forms of steps: ``ONE`` and ``TWO`` call a function of one or two arrays and nothing else, which is faster.
ONE, TWO, ANY = 1, 2, 0
#: The output of a step whose result is not kept.
NOTHING = -1


class Step(NamedTuple):
    """A call of a function with arrays of slots."""

    form: int
    function: Callable[..., Any]
    inputs: tuple[int, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    #: The slot of the result; of a function that returns a tuple, the slots of its arrays.
    output: int | tuple[int, ...]
    #: Slots that are emptied after the call.
    frees: tuple[int, ...]


@dataclass(slots=True)
class Segment:
    """Consecutive steps in one device's memory, with the node and the device of each."""

    home: Device
    steps: list[Step]
    operations: list[Operation]
    devices: list[Device]


@dataclass(slots=True)
class Program:
    """The calls of one run of a session."""

    segments: list[Segment]
    #: The device that fed values are on.
    host: Device
    #: The arrays of slots at the start: constants that need no copy.
    values: list[Any]
    fed: list[int]
    #: The slots of the results, each with the device whose memory it is in.
    fetched: list[tuple[int, Device]]
    #: The tensor in each slot, for reports.
    tensors: list[SymbolicTensor]


class _Builder:
    def __init__(self, placed: dict[Operation, Device], host: Device, state: State) -> None:
        self.placed = placed
        self.host = host
        self.state = state
        #: Slots by tensor and the memory it is in.
        self.slots: dict[tuple[SymbolicTensor, Device], int] = {}
        self.homes: dict[SymbolicTensor, Device] = {}
        #: The node that each tensor was last copied for.
        self.copied: dict[tuple[SymbolicTensor, Device], Operation] = {}
        self.values: list[Any] = []
        self.tensors: list[SymbolicTensor] = []
        self.raw: list[tuple[Operation, Device, Device, Step]] = []
        #: Tensors that are fed.
        self.given: set[SymbolicTensor] = set()
        #: The node that each reference variable was last read for.
        self.read_for: dict[SymbolicTensor, Operation] = {}
        #: Tensors that only kernels need which read their inputs in place.
        self.read_anywhere: set[SymbolicTensor] = set()

    def slot(self, tensor: SymbolicTensor, home: Device) -> int:
        """Add a slot for a tensor in a device's memory."""
        self.slots[tensor, home] = len(self.values)
        self.values.append(None)
        self.tensors.append(tensor)
        return len(self.values) - 1

    def feed(self, tensor: SymbolicTensor) -> int:
        self.homes[tensor] = self.host
        self.given.add(tensor)
        return self.slot(tensor, self.host)

    def read(self, variable: Operation, tensor: SymbolicTensor) -> None:
        """Read a reference variable into a new slot."""
        home = self.homes[tensor]
        function = kernel(variable, self.state, self.placed[variable], home)
        assert function is not None
        step = Step(ANY, function, (), (), {}, self.slot(tensor, home), ())
        self.raw.append((variable, self.placed[variable], home, step))

    def brought(self, operation: Operation, device: Device, home: Device, tensor: SymbolicTensor) -> int:
        """Return the slot of an input in the memory where the kernel wants it."""
        row, at = operation._row, self.homes[tensor]
        variable = variable_read(tensor)
        if variable is not None and tensor not in self.given and self.read_for.get(tensor) is not operation:
            self.read_for[tensor] = operation
            self.read(variable, tensor)
        if reads_in_place(row, tensor._dtype, at, home) or at is home or at.pool is home.pool:
            return self.slots[tensor, at]
        if self.copied.get((tensor, home)) is not operation:
            # Each node gets a copy of its own, as eagerly: a shared one would be held until its last use.
            self.copied[tensor, home] = operation
            source = self.slots[tensor, at]
            step = Step(ONE, copying(at, home), (source,), (), {}, self.slot(tensor, home), ())
            self.raw.append((operation, device, home, step))
        return self.slots[tensor, home]

    def add(self, operation: Operation) -> None:
        """Add the step of a node."""
        row, device = operation._row, self.placed[operation]
        home = _home_of(operation, device, self.host)
        if row.name == "Const" and operation._outputs[0] in self.read_anywhere:
            # It stays on the host, so that a device can be filled to the last byte.
            home = self.host
        if operation._outputs and variable_read(operation._outputs[0]) is not None:
            # Each node that needs the value reads it again, so that it sees earlier changes, as in TensorFlow.
            self.homes[operation._outputs[0]] = home
            return
        special = kernel(operation, self.state, device, home)
        if row.name == "Const" and home.pool is None:
            tensor = operation._outputs[0]
            self.homes[tensor] = home
            self.values[self.slot(tensor, home)] = operation._args[0]
            return
        inputs = tuple(self.brought(operation, device, home, each) for each in operation._computed_with)
        outputs = []
        for tensor in operation._outputs:
            at = result_memory(row, tensor._dtype, device, home, self.host)
            self.homes[tensor] = at
            outputs.append(self.slot(tensor, at))
        args = tuple(map(self.state.argument, operation._args))
        function, kwargs = row.function, operation._kwargs
        if special is not None:
            function, args, kwargs = special, (), {}
        elif row.fault is not None and not _is_checked(operation):
            function = _checked(operation)
        plain = not args and not kwargs
        form = len(inputs) if plain and len(inputs) in (ONE, TWO) else ANY
        output: int | tuple[int, ...] = tuple(outputs)
        if (len(outputs) == 1 and special is not None) or (len(outputs) == 1 and not _makes_tuple(operation)):
            output = outputs[0]
        elif not outputs:
            output = NOTHING
        self.raw.append((operation, device, home, Step(form, function, inputs, args, kwargs, output, ())))


def build(
    tensors: Sequence[SymbolicTensor],
    operations: Sequence[Operation],
    fed: Sequence[SymbolicTensor],
    placed: dict[Operation, Device],
    host: Device,
    state: State,
) -> Program:
    """Make the program that computes tensors and runs operations from fed values.

    Raises:
        InvalidArgumentError: Nodes that wait for each other.
    """
    given, kept = set(fed), set(tensors)
    targets = [tensor._op for tensor in tensors if tensor not in given] + list(operations)
    order = ordered(needed(targets, given), given, kept, placed)
    builder = _Builder(placed, host, state)
    builder.read_anywhere = _read_anywhere(order)
    slots = [builder.feed(tensor) for tensor in fed]
    for operation in order:
        if not all(tensor in given for tensor in operation._outputs) or not operation._outputs:
            builder.add(operation)
    for tensor in dict.fromkeys(tensors):
        variable = variable_read(tensor)
        if variable is not None and tensor not in given:
            builder.read(variable, tensor)
    homes = [builder.homes[tensor] for tensor in tensors]
    fetched = [(builder.slots[tensor, home], home) for tensor, home in zip(tensors, homes, strict=True)]
    return Program(
        _segments(builder.raw, {slot for slot, _ in fetched}),
        host,
        builder.values,
        slots,
        fetched,
        builder.tensors,
    )


def _read_anywhere(order: Sequence[Operation]) -> set[SymbolicTensor]:
    anywhere: set[SymbolicTensor] = set()
    there: set[SymbolicTensor] = set()
    for operation in order:
        (anywhere if operation._row.reads_anywhere else there).update(operation._computed_with)
    return anywhere - there


def _segments(raw: list[tuple[Operation, Device, Device, Step]], fetched: set[int]) -> list[Segment]:
    """Group steps by memory, and let each slot be emptied after its last use."""
    last: dict[int, int] = {}
    for number, (_, _, _, step) in enumerate(raw):
        made = step.output if isinstance(step.output, tuple) else (step.output,)
        for slot in (*step.inputs, *made):
            last[slot] = number
    frees: dict[int, list[int]] = {}
    for slot, number in last.items():
        if slot != NOTHING and slot not in fetched:
            frees.setdefault(number, []).append(slot)
    segments: list[Segment] = []
    for number, (operation, device, home, step) in enumerate(raw):
        if (
            not segments
            or segments[-1].home.pool is not home.pool
            or (home.pool is None and segments[-1].home is not home)
        ):
            segments.append(Segment(home, [], [], []))
        segment = segments[-1]
        segment.steps.append(step._replace(frees=tuple(frees.get(number, ()))))
        segment.operations.append(operation)
        segment.devices.append(device)
    return segments


def _home_of(operation: Operation, device: Device, host: Device) -> Device:
    """Return the device whose memory a node works in."""
    row = operation._row
    if row.name in ("Const", "Placeholder", "VariableV2", "VarHandleOp"):
        return value_memory(operation._outputs[0]._dtype, device, host)
    if operation._variable is not None and row.host is not Host.OUTPUT and row.host is not Host.ALL:
        return value_memory(operation._variable._outputs[0]._dtype, device, host)
    first = operation._inputs[0]._dtype if operation._count else None
    home = kernel_memory(row, first, device, host)
    # A result that a device's array library cannot compute stays in host memory until a node needs it on the device.
    return host if runs_on_host(row, home) else home


def _is_checked(operation: Operation) -> bool:
    """Whether the shapes of inputs were checked when the node was made, so that running needs no check."""
    known = all(tensor._shape.is_fully_defined() for tensor in operation._inputs)
    return operation._row.fault is same_shapes or (
        known and operation._row.name in ("MatMul", "BatchMatMulV2", "AddN")
    )


def _makes_tuple(operation: Operation) -> bool:
    return len(operation._outputs) != 1 or operation._row.makes_tuple


def _checked(operation: Operation) -> Callable[..., Any]:
    """Return the function of a row with a check of its inputs before it."""
    row = operation._row
    function, fault = row.function, row.fault
    assert fault is not None

    def call(*arrays_and_args: Any, **kwargs: Any) -> Any:
        wrong = fault_of(fault, *arrays_and_args, **kwargs)
        if wrong is not None:
            raise graph_error(faults.class_of(wrong), operation, wrong)
        return function(*arrays_and_args, **kwargs)

    return call


__all__ = ["ANY", "NOTHING", "ONE", "TWO", "Program", "Segment", "Step", "build"]
