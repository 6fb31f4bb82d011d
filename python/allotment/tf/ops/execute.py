"""Runs operations: places them, copies their inputs to the device, logs, computes, and wraps the result."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from allotment.devices import placement_log
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.dispatch import current_placement
from allotment.devices.placement import Placement
from allotment.tf.dispatch import thread
from allotment.tf.ops import faults
from allotment.tf.ops.executor import (
    call_in_memory,
    copying,
    fault_of,
    kernel_memory,
    reads_in_place,
    result_memory,
    runs_on_host,
)
from allotment.tf.ops.host_only import HOST_ONLY
from allotment.tf.ops.table import CPU_ONLY, Host, Operation
from allotment.tf.ops.types.type_checks import type_problem
from allotment.tf.tensors.dtype import BY_NUMPY, int32, string
from allotment.tf.tensors.tensor import EagerTensor, tensor_of

_ndarray: Final = np.ndarray

#: Operations that exist to copy: no device policy forbids it.
_COPIERS: Final = frozenset({"Identity", "_EagerConst"})


def run(
    row: Operation, inputs: Sequence[EagerTensor], *args: Any, name: str | None = None, **kwargs: Any
) -> Any:
    """Run a row of the table; ``args`` and ``kwargs`` go to its function behind the inputs' arrays.

    Returns a tensor, or a tuple of tensors where the function returns a tuple of arrays.

    Raises:
        InvalidArgumentError: The inputs do not go together, or the requested device cannot run it.
        ResourceExhaustedError: The device's memory does not hold the result or a temporary.
    """
    state = thread.state
    if state.graph is not None:
        made = state.graph._recording.record(row, inputs, args, kwargs, name)
    else:
        placement = current_placement()
        check_types(row, inputs, name)
        device = placement.place(kinds_for(row, inputs), row.name, name, row.constants)
        made = run_on(placement, device, row, inputs, *args, name=name, **kwargs)
    recorder = state.recorder
    if recorder is not None:
        recorder.record(row, inputs, args, kwargs, made)
    return made


def run_on(
    placement: Placement,
    device: Device,
    row: Operation,
    inputs: Sequence[EagerTensor],
    *args: Any,
    name: str | None = None,
    **kwargs: Any,
) -> Any:
    """Run a row on a given device, such as that of a variable."""
    home = kernel_memory(row, inputs[0]._dtype if inputs else None, device, placement.host)
    borrowed = runs_on_host(row, home)
    target, home = home, placement.host if borrowed else home
    arrays: list[np.ndarray[Any, Any]] = []
    for index, tensor in enumerate(inputs):
        # A tensor that is both operands is copied once, and warned of twice, as in TensorFlow.
        again = index > 0 and tensor is inputs[index - 1]
        if not again or (placement.policy != "silent" and tensor._home is not home):
            array = bring(placement, row, device, home, index, tensor, name, arrays[-1] if again else None)
        arrays.append(array)
    if placement.logging:
        placement_log.log_execution(row.name, device.name)
    if row.fault is not None:
        if home.library is None:
            fault = row.fault(*arrays, *args, **kwargs)
        else:
            fault = compute(
                placement, device, home, row.name, name, fault_of, row.fault, *arrays, *args, **kwargs
            )
        if fault is not None:
            raise faults.invalid(row.name, device, fault, name)
    result = compute(placement, device, home, row.name, name, row.function, *arrays, *args, **kwargs)
    if borrowed:
        result, home = _lent(placement, device, target, row, name, result), target
    if type(result) is tuple:
        return tuple(wrap(placement, device, home, row, name, array) for array in result)
    return wrap(placement, device, home, row, name, result)


def kinds_for(row: Operation, inputs: Sequence[EagerTensor]) -> tuple[str, ...]:
    """Return the kinds of device with a kernel for these inputs; texts have kernels on CPUs only."""
    return CPU_ONLY if any(tensor._dtype is string for tensor in inputs) else row.kinds


def bring(
    placement: Placement,
    row: Operation,
    device: Device,
    home: Device,
    index: int,
    tensor: EagerTensor,
    name: str | None,
    brought: np.ndarray[Any, Any] | None = None,
) -> np.ndarray[Any, Any]:
    """Return the array of an input in the memory that the kernel needs it in.

    An input elsewhere is copied, unless ``brought`` is such a copy already.
    """
    if row.reads_anywhere:
        return tensor._array if reads_in_place(row, tensor._dtype, tensor._home, home) else tensor._on_host()
    if tensor._dtype is string:
        return tensor._array
    if row.host is Host.OUTPUT:
        # Only TensorFlow wants it on the device, and only the policy can tell.
        home = placement.host if device.kind == "GPU" and tensor._dtype is int32 else device
    if tensor._home is home:
        return tensor._array
    if placement.policy != "silent":
        number = row.number(index)
        if number is not None:
            check_policy(placement.policy, row.name, device, home, number, tensor, name)
    if row.host is Host.OUTPUT:
        return tensor._array
    if brought is not None:
        return brought
    if placement_log.logs_copies:
        placement_log.log_copy(row.name, index, tensor._home.name, home.name, tensor._array.nbytes)
    copied: np.ndarray[Any, Any] = compute(
        placement, device, home, row.name, name, copying(tensor._home, home), tensor._array
    )
    return copied


def _lent(
    placement: Placement, device: Device, home: Device, row: Operation, name: str | None, result: Any
) -> Any:
    """Copy the results of a row that computed in host memory to the device, and log the copies."""
    if type(result) is tuple:
        return tuple(_lent(placement, device, home, row, name, each) for each in result)
    array = np.asarray(result)
    if placement_log.logs_copies:
        placement_log.log_result_copy(
            row.name, placement.host.name, home.name, array.nbytes, HOST_ONLY[row.name]
        )
    return compute(placement, device, home, row.name, name, copying(placement.host, home), array)


def check_policy(
    policy: str, op: str, device: Device, home: Device, index: int, tensor: EagerTensor, name: str | None
) -> None:
    """Apply the device policy to a copy before it is made."""
    where = faults.elsewhere(index, home, tensor._home, device)
    if policy == "warn":
        placement_log.warn_of_copy(
            f"before computing {op} {where}. This triggers a copy which can be a performance bottleneck."
        )
    elif op not in _COPIERS and not (policy == "silent_for_int32" and tensor._dtype is int32):
        raise faults.conflicting(op, where, name)


def compute(
    placement: Placement,
    device: Device,
    home: Device,
    op: str,
    name: str | None,
    function: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Call a function of arrays in the memory of ``home``; collect garbage and call again when it is short.

    Raises:
        ResourceExhaustedError: The memory stays too short.
    """
    context = op, device, home, name
    return call_in_memory(
        placement.runner(home), home.pool, function, args, kwargs, faults.exhausted, context
    )


def wrap(
    placement: Placement, device: Device, home: Device, row: Operation, name: str | None, result: Any
) -> EagerTensor:
    """Make a tensor of the result of a kernel; NumPy returns scalars for arrays of rank 0."""
    array = result
    if type(array) is not _ndarray and home.library is None:
        array = compute(placement, device, home, row.name, name, np.asarray, array)
    dtype = row.result or BY_NUMPY[array.dtype]
    return tensor_of(array, dtype, device, result_memory(row, dtype, device, home, placement.host))


def check_types(
    row: Operation, inputs: Sequence[EagerTensor], name: str | None, *, pinned: bool = False
) -> None:
    """Check the inputs' element types; a pinned operation runs where a variable is.

    Raises:
        InvalidArgumentError: TensorFlow's operation does not allow a type, or types that must be equal differ.
        NotFoundError: It has no kernel for a type. Of a pinned operation this is an ``InvalidArgumentError``, too.
        TypeError: In a graph, see ``check_types_in_graph``.
    """
    if thread.state.graph is not None:
        check_types_in_graph(row, inputs)
        return
    problem = type_problem(row, [tensor._dtype for tensor in inputs])
    if problem is not None:
        raise faults.of_types(row.name, problem, name, pinned=pinned)


def check_types_in_graph(row: Operation, inputs: Sequence[Any]) -> None:
    """Check the element types of the inputs of a node; a kernel that is missing is refused when a session runs it.

    Raises:
        TypeError: TensorFlow's operation does not allow a type, or types that must be equal differ.
    """
    if not inputs:
        return
    problem = type_problem(row, [tensor._dtype for tensor in inputs], kernels=False)
    if problem is not None:
        raise faults.of_types_in_graph(row.name, problem)


__all__ = ["bring", "check_types", "check_types_in_graph", "compute", "run", "run_on"]
