"""Loops of graphs over slices along the first axis, of which only a session knows how many there are.

A loop is one node. Its body are other nodes of the graph, which were made by one call of the program's function with
placeholders for the slices. When the loop runs, it computes the body again and again on the CPU, with each slice fed.
The gradient of a loop is a loop in the other direction. Its body are the gradients of the first one's body.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from allotment import errors
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.tf.dispatch import ThreadState, thread
from allotment.tf.graph.gradients import gradients_v1
from allotment.tf.graph.graph import Graph
from allotment.tf.graph.nodes.errors import graph_error
from allotment.tf.graph.nodes.node import Operation, SymbolicTensor, variable_read
from allotment.tf.graph.nodes.random_sources import is_source
from allotment.tf.graph.running.execution import execute
from allotment.tf.graph.running.kernels import KERNELS
from allotment.tf.graph.running.program import Program, build
from allotment.tf.graph.running.state import State
from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.autodiff.differentiation import Call, is_differentiable
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.indexed_slices import dense
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.table import CPU_ONLY, Gradient, Host
from allotment.tf.ops.table import Operation as Row
from allotment.tf.tensors.tensor_shape import TensorShape

#: Nodes of variables that the body makes are outside of it: the loop reads a variable once, and its gradient is that
#: of the value that was read.
_OUTSIDE: Final = frozenset({"ReadVariableOp", "VarHandleOp", "VariableV2"})


@dataclass(eq=False, slots=True)
class Body:
    """The nodes that a loop computes for each slice, and the tensors that go in and out."""

    #: Tensors that are fed with a slice of each sequence.
    slices: list[SymbolicTensor]
    #: Tensors that are fed with the values of the step before, and their next values.
    carries: list[SymbolicTensor]
    results: list[SymbolicTensor]
    #: Tensors that are stacked over all steps.
    outs: list[SymbolicTensor]
    backwards: bool
    nodes: frozenset[Operation]
    #: Tensors from outside of the body.
    captured: list[SymbolicTensor]
    #: What the gradient needs of each step beside the slices: the values before it, and random numbers.
    saved: list[SymbolicTensor]
    #: Whether there is a gradient.
    saves: bool = False


def _body(
    slices: list[SymbolicTensor],
    carries: list[SymbolicTensor],
    results: list[SymbolicTensor],
    outs: list[SymbolicTensor],
    backwards: bool,
    inside: Callable[[Operation], bool],
) -> Body:
    """Find the nodes of a body: those that its results need, are ``inside``, and are not fed."""
    fed = {*slices, *carries}
    nodes: dict[Operation, None] = {}
    captured: dict[SymbolicTensor, None] = {}
    waiting: list[SymbolicTensor | Operation] = [*results, *outs]
    while waiting:
        each = waiting.pop()
        node = each if isinstance(each, Operation) else each._op
        if each in fed or node in nodes:
            continue
        if isinstance(each, SymbolicTensor) and (
            not inside(node) or node.type in _OUTSIDE or variable_read(each) is not None
        ):
            captured[each] = None
            continue
        nodes[node] = None
        waiting += [*node._computed_with, *node._control_inputs]
    drawn = [tensor for node in nodes if any(map(is_source, node._args)) for tensor in node._outputs]
    return Body(
        slices, carries, results, outs, backwards, frozenset(nodes), list(captured), [*carries, *drawn]
    )


def _loop_shape(c: Inference, body: Body) -> list[Output]:
    counts = [each[0] if each else None for each in c.shapes()[: len(body.slices)]]
    count = next((each for each in counts if each is not None), None)
    finals = []
    for first, result in zip(c.inputs[len(body.slices) :], body.results, strict=False):
        one, other = first._shape._dims, result._shape._dims
        # The value before the first step stays if there are no slices.
        same = one is not None and other is not None and len(one) == len(other)
        finals.append((result._dtype, _agreed(one, other) if same else None))
    rows = [*body.outs, *body.saved]
    return [
        *finals,
        *((each._dtype, None if each._shape._dims is None else (count, *each._shape._dims)) for each in rows),
    ]


def _agreed(one: Any, other: Any) -> tuple[int | None, ...]:
    return tuple(a if a == b else None for a, b in zip(one, other, strict=True))


def loop(
    graph: Graph,
    function: Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]],
    sequences: Sequence[SymbolicTensor],
    firsts: Sequence[SymbolicTensor],
    backwards: bool,
    name: str,
) -> tuple[list[SymbolicTensor], list[SymbolicTensor]]:
    """Add a loop over the slices of sequences.

    Args:
        graph: The graph.
        function: Called once with tensors for the values and for one slice of each sequence; returns the next values
            and tensors to stack.
        sequences: Tensors with first axes as long as that of the first one.
        firsts: The values before the first step.
        backwards: Whether the last slice is the first.
        name: The scope of the nodes.

    Returns:
        The values after the last step, and the stacked tensors.
    """
    with graph.name_scope(name):
        body = _recorded(graph, function, sequences, firsts, backwards)
        return _added(graph, body, sequences, firsts)


def _recorded(
    graph: Graph,
    function: Callable[..., Any],
    sequences: Sequence[Any],
    firsts: Sequence[Any],
    backwards: bool,
) -> Body:
    start = len(graph.get_operations())
    # Nodes of a body wait for none outside: those would run at each step.
    with graph.control_dependencies(None):
        slices = [graph._placeholder(each._dtype, _slice_shape(each)) for each in sequences]
        carries = [graph._placeholder(each._dtype, each._shape) for each in firsts]
        results, outs = function(carries, slices)
        return _body(slices, carries, results, outs, backwards, lambda node: node._number >= start)


def _slice_shape(tensor: SymbolicTensor) -> TensorShape:
    dims = tensor._shape._dims
    return TensorShape(None if dims is None else dims[1:])


def _added(
    graph: Graph, body: Body, sequences: Sequence[Any], firsts: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Add the node of a loop, which has a kernel on the CPU alone, whatever a scope says."""
    inputs: list[Any] = [*sequences, *firsts, *body.captured]
    with graph.device(None), graph.colocate_with(None, ignore_existing=True):
        made = run(_row, inputs, body)
    finals = len(body.results)
    return list(made[:finals]), list(made[finals : finals + len(body.outs)])


def _kernel(node: Operation, state: State, device: Device, _: Device) -> Callable[..., Any]:
    body: Body = node._args[0]
    programs: dict[bool, Program] = {}

    def call(*arrays: Any) -> Any:
        saves = body.saves
        drawn = body.saved[len(body.carries) :] if saves else []
        targets = [*body.results, *body.outs, *drawn]
        if saves not in programs:
            fed = [*body.slices, *body.carries, *body.captured]
            programs[saves] = build(targets, [], fed, dict.fromkeys(body.nodes, device), device, state)
        count = len(body.slices)
        sequences, carries = arrays[:count], list(arrays[count : count + len(body.carries)])
        captured = arrays[count + len(body.carries) :]
        # As many as the first sequence has, as in TensorFlow.
        order = range(len(sequences[0]))
        least = min(map(len, sequences))
        if least < len(order):
            text = f"Trying to access element {least} in a list with {least} elements: sequences have unequal lengths."
            raise graph_error(errors.InvalidArgumentError, node, text)
        rows: list[list[Any]] = []
        for index in reversed(order) if body.backwards else order:
            fed = [*(each[index, ...] for each in sequences), *carries, *captured]
            # The loop runs inside of a node: the thread's own state has entered the node's memory.
            with thread.with_state(ThreadState()):
                made = execute(programs[saves], fed)
            made = [np.asarray(each, tensor._dtype.numpy) for each, tensor in zip(made, targets, strict=True)]
            before, carries = carries, made[: len(body.results)]
            outs = made[len(body.results) : len(body.results) + len(body.outs)]
            rows.append([*outs, *([*before, *made[len(body.results) + len(body.outs) :]] if saves else [])])
        if body.backwards:
            rows.reverse()
        stacked = [np.stack(column) for column in zip(*rows, strict=True)]
        tensors = [*body.outs, *body.saved]
        # Without steps, and for what only a gradient needs.
        stacked += [np.zeros(_no_rows(each), each._dtype.numpy) for each in tensors[len(stacked) :]]
        made = [*carries, *stacked]
        return made if len(made) != 1 else made[0]

    return call


def _no_rows(tensor: SymbolicTensor) -> list[int]:
    return [0, *(length or 0 for length in tensor._shape._dims or ())]


KERNELS["While"] = _kernel


def _backward_loop(call: Call, *upstream: Any) -> list[Any]:
    body: Body = call.args[0]
    graph: Any = call.inputs[0].graph
    body.saves = True
    slices, carries = len(body.slices), len(body.carries)
    sequences, captured = call.inputs[:slices], call.inputs[slices + carries :]
    saved = call.outputs[len(body.results) + len(body.outs) :]
    start = len(graph.get_operations())
    with graph.control_dependencies(None):
        # A gradient of this gradient reads the values that were saved.
        targets = [*body.results, *body.outs, *body.carries]
        moving = [place for place, each in enumerate(targets) if is_differentiable(each._dtype)]
        seeds = {place: graph._placeholder(targets[place]._dtype, targets[place]._shape) for place in moving}
        sources = [*body.slices, *body.carries, *body.captured]
        found = gradients_v1(
            [targets[place] for place in moving],
            sources,
            [seeds[place] for place in moving],
            stop_gradients=[*sources, *body.saved],
        )
        slopes: list[Any] = [None if each is None else dense(each) for each in found]
        # Values that carry on: the gradients of those of the loop, and sums for the tensors from outside.
        held = [place for place in moving if place < carries]
        summed = [place for place, each in enumerate(slopes[slices + carries :]) if each is not None]
        sums = [graph._placeholder(captured[place]._dtype, captured[place]._shape) for place in summed]
        results: list[Any] = [
            zeros_like(body.carries[place]) if (slope := slopes[slices + place]) is None else slope
            for place in held
        ]
        results += [
            total + slopes[slices + carries + place] for total, place in zip(sums, summed, strict=True)
        ]
        wanted = [place for place in range(slices) if slopes[place] is not None]
        of_outs = [place for place in moving if place >= carries]
        back = _body(
            [*body.slices, *body.saved, *(seeds[place] for place in of_outs)],
            [*(seeds[place] for place in held), *sums],
            results,
            [slopes[place] for place in wanted],
            not body.backwards,
            lambda node: node in body.nodes or node._number >= start,
        )
    finals, outs = _added(
        graph,
        back,
        [*sequences, *saved, *(upstream[place] for place in of_outs)],
        [*(upstream[place] for place in held), *(zeros_like(captured[place]) for place in summed)],
    )
    made: list[Any] = [zeros_like(each) if is_differentiable(each._dtype) else None for each in sequences]
    made += [None] * (len(call.inputs) - slices)
    places = [*(slices + place for place in held), *(slices + carries + place for place in summed), *wanted]
    for place, each in zip(places, [*finals, *outs], strict=True):
        made[place] = each
    return made


_row: Final = Row(
    "While",
    lambda *arrays: arrays,
    shape=_loop_shape,
    kinds=CPU_ONLY,
    host=Host.NEVER,
    makes_tuple=True,
    same_dtype=False,
    own_gradient=Gradient(_backward_loop),
)

__all__ = ["loop"]
