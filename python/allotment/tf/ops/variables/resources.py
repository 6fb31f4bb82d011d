"""What variables keep, and the operations that read and change it, on the variable's device in every scope.

A tensor's elements never change, so that a variable and the tensors it was assigned or read as may share one
array. Only an array without other references is changed in place; any other is replaced by a changed copy.
"""

import sys
import sysconfig
import threading
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from allotment.devices import placement_log
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.dispatch import current_placement
from allotment.tf.ops.arrays import Array, is_host
from allotment.tf.ops.execute import check_types, compute, run_on
from allotment.tf.ops.executor import copying
from allotment.tf.ops.indexing.scattering import assign_at, scatter, scatter_fault
from allotment.tf.ops.indexing.slicing import Index, index_fault, view
from allotment.tf.ops.inference.common import stated, unchanged
from allotment.tf.ops.reduction.rows import at
from allotment.tf.ops.table import CPU_ONLY, EVERYWHERE, Operation, StatefulArgument, dims, operation
from allotment.tf.tensors.dtype import DType, string
from allotment.tf.tensors.tensor import EagerTensor, tensor_of


class Storage(StatefulArgument):
    """The value of a variable, and the devices it is on for life."""

    __slots__ = ("array", "device", "dtype", "home", "lock")

    def __init__(self, array: Array, dtype: DType, device: Device, home: Device) -> None:
        self.array = array
        self.dtype = dtype
        self.device = device
        self.home = home
        # Held while the array is changed in place, and while it is handed out. Re-entrant: memory that runs out
        # makes Python collect, and what is collected may read variables.
        self.lock = threading.RLock()


def _same(array: Array) -> Array:
    return array


# The variable shares the memory of the tensor it is assigned, as TensorFlow's does.
_assign = operation("AssignVariableOp", _same, shape=unchanged)


def create(value: EagerTensor, name: str | None) -> Storage:
    """Make a storage with a first value on the device of the scope."""
    placement = current_placement()
    kinds = CPU_ONLY if value._dtype is string else EVERYWHERE
    device = placement.place(kinds, "VarHandleOp", f"{name or 'Variable'}/")
    if placement.logging:
        placement_log.log_execution("VarHandleOp", device.name)
    first = run_on(placement, device, _assign, (value,))
    return Storage(first._array, first._dtype, device, first._home)


def read(storage: Storage) -> EagerTensor:
    """The value as a tensor. It keeps the value: later changes of the variable do not change it."""
    placement = current_placement()
    placement.check("ReadVariableOp", None)
    if placement.logging:
        placement_log.log_execution("ReadVariableOp", storage.device.name)
    with storage.lock:
        array = storage.array
    return tensor_of(array, storage.dtype, storage.device, storage.home)


def assign(storage: Storage, value: EagerTensor, name: str | None) -> None:
    """Give a storage another value; the old one is freed unless it has other references."""
    placement = current_placement()
    placement.check(_assign.name, name)
    if not placement.changes_variables:
        return
    given = run_on(placement, storage.device, _assign, (value,), name=name)
    with storage.lock:
        storage.array = given._array


def copied(storage: Storage) -> Storage:
    """A storage on the same devices with a copy of the value."""
    value, home = read(storage)._array, storage.home
    array = compute(current_placement(), storage.device, home, "Identity", None, copying(home, home), value)
    return Storage(array, storage.dtype, storage.device, storage.home)


#: How many references there are to an array that only a storage holds, counted as ``_is_alone`` counts.
_probe: Final = Storage(np.zeros(1), string, None, None)  # type: ignore[arg-type]
_ALONE: Final = sys.getrefcount(_probe.array)


#: Whether the count is exact. Without the GIL it is the sum of two numbers that other threads change in between.
_IS_COUNT_EXACT: Final = not sysconfig.get_config_var("Py_GIL_DISABLED")


def _is_alone(storage: Storage) -> bool:
    """Whether the array has no other reference. The caller holds the lock, so that no thread gets one meanwhile."""
    if not _IS_COUNT_EXACT or sys.getrefcount(storage.array) != _ALONE:
        return False
    return storage.array.base is None and (not is_host(storage.array) or storage.array.flags.writeable)


def writable(storage: Storage) -> Array:
    """The array itself if it may be changed in place, else a copy."""
    return storage.array if _is_alone(storage) else storage.array.copy()


def _update(op: str, function: Callable[..., Any]) -> Operation:
    def fault(value: Array, storage: Storage) -> str | None:
        if value.shape == storage.array.shape:
            return None
        return (
            f"Cannot update variable with shape {dims(storage.array)} using a Tensor with shape {dims(value)}, "
            "shapes must be equal."
        )

    def changed(value: Array, storage: Storage) -> Any:
        if _is_alone(storage):
            return function(storage.array, value, out=storage.array)
        return function(storage.array, value)

    return operation(op, changed, shape=stated, fault=fault)


ADD: Final = _update("AssignAddVariableOp", np.add)
SUBTRACT: Final = _update("AssignSubVariableOp", np.subtract)


def _scatter(op: str, change: Callable[..., None]) -> Operation:
    def fault(value: Array, indices: Array, storage: Storage) -> str | None:
        return scatter_fault(storage.array.shape, indices, value)

    def changed(value: Array, indices: Array, storage: Storage) -> Array:
        array = writable(storage)
        scatter(change, array, indices, value)
        return array

    return operation(op, changed, shape=stated, fault=fault)


SCATTER_UPDATE: Final = _scatter("ResourceScatterNdUpdate", assign_at)
SCATTER_ADD: Final = _scatter("ResourceScatterNdAdd", at(np.add))
SCATTER_SUBTRACT: Final = _scatter("ResourceScatterNdSub", at(np.subtract))


def _part_fault(value: Array, index: Index, storage: Storage) -> str | None:
    fault = index_fault(storage.array, index)
    if fault is not None:
        return fault
    part = view(storage.array, index)
    if value.size == part.size:
        return None
    try:
        fits = np.broadcast_shapes(value.shape, part.shape) == part.shape
    except ValueError:
        fits = False
    return None if fits else f"Cannot assign a value of shape {dims(value)} to a slice of shape {dims(part)}"


def _part_assigned(value: Array, index: Index, storage: Storage) -> Array:
    array = writable(storage)
    part = view(array, index)
    part[...] = value.reshape(part.shape) if value.size == part.size else value
    return array


ASSIGN_PART: Final = operation("ResourceStridedSliceAssign", _part_assigned, shape=stated, fault=_part_fault)


def change(row: Operation, storage: Storage, *inputs: Any, name: str | None = None) -> None:
    """Run an operation that changes a storage: tensors first, then its own arguments."""
    placement = current_placement()
    placement.check(row.name, name)
    if not placement.changes_variables:
        return
    tensors = tuple(each for each in inputs if isinstance(each, EagerTensor))
    others = inputs[len(tensors) :]
    check_types(row, tensors, name, pinned=True)
    with storage.lock:
        made = run_on(placement, storage.device, row, tensors, *others, storage, name=name)
        storage.array = made._array


__all__ = [
    "ADD",
    "ASSIGN_PART",
    "SCATTER_ADD",
    "SCATTER_SUBTRACT",
    "SCATTER_UPDATE",
    "SUBTRACT",
    "Storage",
    "assign",
    "change",
    "copied",
    "create",
    "read",
    "writable",
]
