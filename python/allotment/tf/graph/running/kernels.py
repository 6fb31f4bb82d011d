"""Kernels of nodes that do more than compute a function of their inputs: constants, placeholders, variables.

All other nodes call the function of their row, as eager operations do.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from allotment import errors
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.tf.graph.nodes.errors import graph_error
from allotment.tf.graph.nodes.node import Operation
from allotment.tf.graph.nodes.random_sources import Fixed
from allotment.tf.graph.nodes.rows import ANY_SHAPE
from allotment.tf.graph.running.state import State
from allotment.tf.ops import faults
from allotment.tf.ops.arrays import as_array
from allotment.tf.ops.executor import fault_of
from allotment.tf.ops.variables.resources import Storage
from allotment.tf.tensors.tensor_shape import TensorShape


def kernel(node: Operation, state: State, device: Device, home: Device) -> Callable[..., Any] | None:
    """Return the function that a node calls with the arrays of its inputs; ``None`` for the function of its row."""
    make = KERNELS.get(node._row.name)
    if make is not None:
        return make(node, state, device, home)
    if node._variable is not None:
        return _change(node, state)
    if any(isinstance(each, Fixed) for each in node._args):
        return _drawn_alike(node)
    return None


def _constant(node: Operation, state: State, device: Device, home: Device) -> Callable[..., Any]:
    value = node._args[0]
    if home.pool is None:
        return lambda: value
    copy = np.copy if home.library is None else home.library.from_host
    return lambda: copy(value)


def _placeholder(node: Operation, state: State, device: Device, home: Device) -> Callable[..., Any]:
    def call() -> Any:
        output = node._outputs[0]
        dims = output._shape._dims
        shape = (
            "<unknown>"
            if dims is None
            else "[" + ",".join("?" if each is None else str(each) for each in dims) + "]"
        )
        raise graph_error(
            errors.InvalidArgumentError,
            node,
            f"You must feed a value for placeholder tensor '{node.name}' with dtype {output._dtype.error_name} and "
            f"shape {shape}",
        )

    return call


def stored(node: Operation, state: State) -> Storage:
    """Return the storage of the variable that a node reads or changes.

    Raises:
        FailedPreconditionError: Nothing has been assigned to it in this session.
    """
    variable = node if node._variable is None else node._variable
    storage = state.storages.get(variable)
    if storage is None:
        name = variable.name
        if variable.type == "VariableV2":
            text = f"Attempting to use uninitialized value {name}"
        else:
            text = (
                f"Could not find variable {name}. This could mean that the variable has been deleted. In TF1, it can "
                f"also mean the variable is uninitialized. Debug info: container=localhost, status error message="
                f"Resource localhost/{name} does not exist. Run its initializer, or tf.global_variables_initializer(), "
                "in this session first."
            )
        raise graph_error(errors.FailedPreconditionError, node, text)
    return storage


def _read(node: Operation, state: State, device: Device, home: Device) -> Callable[..., Any]:
    def call() -> Any:
        storage = stored(node, state)
        with storage.lock:
            return storage.array

    return call


def _assign(node: Operation, state: State, device: Device, home: Device) -> Callable[..., Any]:
    variable = node._variable
    assert variable is not None
    shape = variable._outputs[0]._shape

    def call(value: Any) -> Any:
        storage = state.storages.get(variable)
        # A reference variable keeps the shape that it has; a resource that of its first value.
        kept = storage.array.shape if storage is not None and node.type == "Assign" else shape
        fits = ANY_SHAPE in node._args or TensorShape(kept).is_compatible_with(value.shape)
        if not fits:
            raise graph_error(
                errors.InvalidArgumentError,
                node,
                f"Assign requires shapes of both tensors to match. lhs shape= {_dims(kept)} rhs shape= "
                f"{_dims(value.shape)}",
            )
        if storage is None:
            state.storages[variable] = Storage(value, variable._outputs[0]._dtype, device, home)
        else:
            with storage.lock:
                storage.array = value
        return value

    return call


def _dims(shape: Any) -> str:
    return "[" + ",".join(map(str, shape)) + "]"


def _initialized_value(node: Operation, state: State, device: Device, home: Device) -> Callable[..., Any]:
    variable = node._variable
    assert variable is not None

    def call(first: Any) -> Any:
        storage = state.storages.get(variable)
        if storage is None:
            return first
        with storage.lock:
            return storage.array

    return call


def _change(node: Operation, state: State) -> Callable[..., Any]:
    """Return the function of a row of ``ops.variables`` with the session's storage as its last argument."""
    function, fault, args = node._row.function, node._row.fault, node._args

    def call(*arrays: Any) -> Any:
        storage = stored(node, state)
        with storage.lock:
            wrong = None if fault is None else fault_of(fault, *arrays, *args, storage)
            if wrong is not None:
                raise graph_error(faults.class_of(wrong), node, wrong)
            storage.array = as_array(function(*arrays, *args, storage))
            return storage.array

    return call


def _drawn_alike(node: Operation) -> Callable[..., Any]:
    """Return a function that starts the node's random numbers anew, so that each run gives the same ones."""
    function, fault, args, kwargs = node._row.function, node._row.fault, node._args, node._kwargs

    def call(*arrays: Any) -> Any:
        wrong = None if fault is None else fault_of(fault, *arrays, *args, **kwargs)
        if wrong is not None:
            raise graph_error(faults.class_of(wrong), node, wrong)
        started = [each.generator() if isinstance(each, Fixed) else each for each in args]
        return function(*arrays, *started, **kwargs)

    return call


def _is_initialized(node: Operation, state: State, device: Device, home: Device) -> Callable[..., Any]:
    variable = node._variable
    return lambda: np.array(variable in state.storages)


def _make_iterator(node: Operation, state: State, device: Device, home: Device) -> Callable[..., Any]:
    iterator, start = node._args

    def call(*captured: Any) -> None:
        state.iterators[iterator] = start(captured)

    return call


def _get_next(node: Operation, state: State, device: Device, home: Device) -> Callable[..., Any]:
    iterator, start = node._args

    def call() -> Any:
        found = state.iterators.get(iterator)
        if found is None and start is not None:
            found = state.iterators[iterator] = start(())
        if found is None:
            raise graph_error(
                errors.FailedPreconditionError,
                node,
                "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                "initializer operation for this iterator before getting the next element.",
            )
        arrays = next(found, None)
        if arrays is None:
            raise graph_error(errors.OutOfRangeError, node, "End of sequence")
        return arrays if len(arrays) > 1 else arrays[0]

    return call


#: Makes the kernel of a node, by the name of its row.
KERNELS: Final[dict[str, Callable[..., Callable[..., Any]]]] = {
    "AssignVariableOp": _assign,
    "Assign": _assign,
    "Const": _constant,
    "InitializedValue": _initialized_value,
    "IsVariableInitialized": _is_initialized,
    "IteratorGetNext": _get_next,
    "MakeIterator": _make_iterator,
    "Placeholder": _placeholder,
    "ReadVariableOp": _read,
    "VarIsInitializedOp": _is_initialized,
    "VariableV2": _read,
    "VarHandleOp": _read,
}

__all__ = ["KERNELS", "kernel"]
