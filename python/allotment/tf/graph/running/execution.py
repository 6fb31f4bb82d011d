"""Runs programs: calls their steps in the memory of each device, and makes errors those of the node that failed."""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from allotment import errors
from allotment._core import format_size
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.dispatch import memory_runner
from allotment.devices.memory_runner import MemoryRunner
from allotment.tf.graph.nodes.errors import graph_error, of_node
from allotment.tf.graph.nodes.node import Operation
from allotment.tf.graph.running.program import NOTHING, ONE, TWO, Program, Segment, Step
from allotment.tf.ops import faults
from allotment.tf.ops.arrays import as_array
from allotment.tf.ops.executor import call_in_memory, fault_of

_ndarray: Final = np.ndarray

#: Called after each step while a run is traced: segment, position, arrays.
Trace = Callable[[Segment, int, list[Any]], None]

_P = ParamSpec("_P")
_T = TypeVar("_T")

_HINT: Final = (
    "Hint: If you want to see a list of allocated tensors when OOM happens, add report_tensor_allocations_upon_oom to "
    "RunOptions for current allocation info. This isn't available when running in Eager mode."
)


class _Position:
    """Counts the finished steps of a segment."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


def execute(
    program: Program, fed: Sequence[Any], *, report_upon_oom: bool = False, trace: Trace | None = None
) -> list[Any]:
    """Run a program and return the fetched values in NumPy's own memory.

    Raises:
        OpError: A node failed; the error names it.
    """
    values = program.values.copy()
    for slot, value in zip(program.fed, fed, strict=True):
        values[slot] = value if program.host.pool is None else _fed(program, slot, value)
    for segment in program.segments:
        _run_segment(program, segment, values, report_upon_oom, trace)
    return [_result(values[slot], home) for slot, home in program.fetched]


def _fed(program: Program, slot: int, value: Any) -> Any:
    """Copy a fed value to the host's memory, so that it counts against the pool, as all arrays of a program do."""
    host = program.host
    context = program.tensors[slot].op, host, host
    return call_in_memory(memory_runner(host), host.pool, np.copy, (value,), {}, _too_large, context)


def _result(array: Any, home: Device) -> Any:
    if home.library is not None:
        array = home.library.to_host(array)
        return array[()] if array.ndim == 0 else array
    return array[()] if array.ndim == 0 else array.copy()


def _run_segment(
    program: Program, segment: Segment, values: list[Any], report_upon_oom: bool, trace: Trace | None
) -> None:
    inside, steps = memory_runner(segment.home), segment.steps
    call: MemoryRunner = inside
    if trace is not None or (segment.home.pool is not None and segment.home.pool.owner_tags):
        # Each step enters the memory by itself, so that tags and traces know its node.
        steps = [
            step._replace(function=partial(inside, _called(step.function, operation.name)))
            for step, operation in zip(steps, segment.operations, strict=True)
        ]
        call = _plainly
    position = _Position()
    run: Callable[..., None] = _run_steps if trace is None else partial(_run_traced, segment, trace)
    arguments = steps, position, values
    # Not a closure, which would have to be made for each segment of each run.
    context = program, segment, position, values, report_upon_oom
    try:
        call_in_memory(call, segment.home.pool, run, arguments, {}, _exhausted, context, position)
    except errors.OpError as error:
        _let_go(error, values)
        if error.op is not None:
            raise
        raise of_node(error, segment.operations[position.value]) from None
    except (ValueError, np.linalg.LinAlgError) as error:
        invalid = _invalid(segment, position.value, steps, values, error)
        _let_go(error, values)
        raise invalid from error


def _let_go(error: Exception, values: list[Any]) -> None:
    """Free the arrays of a failed run: the frames of the error would keep them for as long as the error lives."""
    values.clear()
    error.__traceback__ = None


def _called(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function under another name, for tags."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__name__ = name
    return call


def _plainly(function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    return function(*args, **kwargs)


def _run_steps(steps: Sequence[Step], position: _Position, values: list[Any]) -> None:
    """Run steps from a position on; if one fails, the position is its number."""
    start = at = position.value
    try:
        for form, function, inputs, args, kwargs, output, frees in steps[start:] if start else steps:
            if form == TWO:
                left, right = inputs
                made = function(values[left], values[right])
            elif form == ONE:
                made = function(values[inputs[0]])
            else:
                made = function(*[values[each] for each in inputs], *args, **kwargs)
            if type(output) is tuple:
                for slot, array in zip(output, made, strict=True):
                    values[slot] = as_array(array)
            elif output != NOTHING:
                values[output] = made if type(made) is _ndarray else as_array(made)  # type: ignore[index]
            for slot in frees:
                values[slot] = None
            at += 1
    finally:
        position.value = at


def _run_traced(
    segment: Segment, trace: Trace, steps: Sequence[Step], position: _Position, values: list[Any]
) -> None:
    for at in range(position.value, len(steps)):
        position.value = at
        step, one = steps[at]._replace(frees=()), _Position()
        _run_steps([step], one, values)
        trace(segment, at, values)
        for slot in steps[at].frees:
            values[slot] = None
    position.value = len(steps)


def _exhausted(
    program: Program,
    segment: Segment,
    position: _Position,
    values: list[Any],
    report: bool,
    error: MemoryError | ValueError,
) -> BaseException:
    """Make the error of a device whose memory is too short for a node, and free the run's arrays.

    ``report`` adds the tensors in that memory.
    """
    at = position.value
    made = _too_large(segment.operations[at], segment.devices[at], segment.home, error)
    if isinstance(made, errors.OpError):
        made._message += f"\n{_allocations(program, segment, values)}" if report else f"\n{_HINT}"
    values.clear()
    return made


def _too_large(
    operation: Operation, device: Device, home: Device, error: MemoryError | ValueError
) -> BaseException:
    """Make the error of a node whose array ``home`` does not hold."""
    plain = faults.exhausted(operation.type, device, home, None, error)
    if not isinstance(plain, errors.OpError):
        return plain
    line, _, rest = plain.message.partition("\n")
    line = line.partition("}} ")[2].rpartition(" [Op:")[0]
    plain._message = f"{line}\n{rest}" if rest else line
    made: errors.OpError = of_node(plain, operation)
    return made


def _allocations(program: Program, segment: Segment, values: list[Any]) -> str:
    """List the tensors in a device's memory, the largest first."""
    pool = segment.home.pool
    allocator = "cpu" if pool is None else pool.name
    lines = [f"\nCurrent usage from device: {segment.home.name}, allocator: {allocator}"]
    held: dict[int, tuple[int, str]] = {}
    at = _homes(program)
    for slot, array in enumerate(values):
        if array is not None and at.get(slot) is pool and array.nbytes:
            owner = array if array.base is None else array.base
            held[id(owner)] = (array.nbytes, program.tensors[slot].op.name)
    found = sorted(held.values(), reverse=True)
    lines += [f"  {format_size(nbytes)} from {name}" for nbytes, name in found[:_SHOWN]]
    if len(found) > _SHOWN:
        rest = sum(nbytes for nbytes, _ in found[_SHOWN:])
        lines.append(f"  Remaining {len(found) - _SHOWN} nodes with {format_size(rest)}")
    return "\n".join(lines)


_SHOWN: Final = 15


def _homes(program: Program) -> dict[int, Any]:
    """Map each slot to the pool of its array."""
    found: dict[int, Any] = {}
    for segment in program.segments:
        for step in segment.steps:
            for slot in step.output if isinstance(step.output, tuple) else (step.output,):
                found[slot] = segment.home.pool
    return found


def _invalid(
    segment: Segment, at: int, steps: Sequence[Step], values: list[Any], error: Exception
) -> errors.OpError:
    """Make the error of invalid inputs, with the text of the row's own check if it has one."""
    operation, step = segment.operations[at], steps[at]
    text = str(error)
    if operation._row.fault is not None:
        arrays = [values[each] for each in step.inputs]
        with contextlib.suppress(TypeError, ValueError):
            inside = memory_runner(segment.home)
            text = inside(fault_of, operation._row.fault, *arrays, *step.args, **step.kwargs) or text
    return graph_error(faults.class_of(text), operation, text)


__all__ = ["Trace", "execute"]
