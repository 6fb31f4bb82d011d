"""Makes functions for users from rows of the operation table.

``binary`` and ``unary`` make the functions of operations with two inputs and with one. Both have a fast path for the
usual case: the inputs are eager tensors of one type on the device where the operation runs, without a log or a policy.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.context import context
from allotment.devices.dispatch import current_placement
from allotment.devices.placement import Placement
from allotment.tf.dispatch import thread
from allotment.tf.ops.convert import to_pair, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.host_only import HOST_ONLY
from allotment.tf.ops.inference.common import broadcasting, unchanged
from allotment.tf.ops.table import Operation, operation, same_shapes
from allotment.tf.ops.types.type_checks import has_kernel
from allotment.tf.tensors.dtype import BY_NUMPY, DType, float32, int32, string
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.tensor import EagerTensor, tensor_of

_ndarray: Final = np.ndarray
_context: Final = context()


def public(call: Callable[..., EagerTensor], name: str, doc: str) -> Callable[..., EagerTensor]:
    """Give a function for users its name and its docstring; returns it."""
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def public_unary(
    name: str, op: str, function: Callable[..., Any], doc: str, **fields: Any
) -> Callable[..., EagerTensor]:
    """Enter an operation with one input into the table and make its function."""
    return public(unary(operation(op, function, **({"shape": unchanged} | fields))), name, doc)


def public_binary(
    name: str, op: str, function: Callable[..., Any], doc: str, **fields: Any
) -> Callable[..., EagerTensor]:
    """Enter an operation with two inputs of one type, broadcast to each other, and make its function."""
    return public(
        binary(operation(op, function, **({"shape": broadcasting, "fault": same_shapes} | fields))), name, doc
    )


def binary(
    row: Operation,
    texts: Operation | None = None,
    pair: Callable[..., Any] = to_pair,
    truths: Callable[..., EagerTensor] | None = None,
    called: str | None = None,
) -> Callable[..., EagerTensor]:
    """Make the function of an operation with two inputs of one type that are broadcast to each other.

    ``texts`` is the row for texts, ``truths`` the function where an input has truth values, if there is one; ``pair``
    converts operands that are no tensors; ``called`` is the name of its nodes in graphs, by default the row's.
    """
    function = row.function
    fixed = row.result
    quick = _quick_types(row)
    floats = float32 in quick
    in_graphs = called or row.name

    def call(x: Any, y: Any, name: str | None = None) -> EagerTensor:
        if type(x) is not EagerTensor or type(y) is not EagerTensor:
            graph = thread.state.graph
            if graph is not None:
                return graph._recording.pair(by_types, pair, x, y, name or in_graphs)  # type: ignore[no-any-return]
            x, y = pair(x, y)
        dtype = x._dtype
        if dtype is y._dtype and (floats if dtype is float32 else dtype in quick):
            placement = thread.state.placement
            if placement is None or placement.version != _context.flags_version:
                placement = current_placement()
            home = placement.home
            if x._home is home and y._home is home and (dtype is not int32 or home.kind == "CPU"):
                try:
                    array = placement.compute(function, x._array, y._array)
                except (ValueError, MemoryError):
                    pass  # ``run`` says what is wrong, where no exception with frames of ours is its context.
                else:
                    if type(array) is not _ndarray and home.library is None:
                        array = placement.compute(np.asarray, array)
                    made = EagerTensor()
                    made._array = array
                    made._dtype = fixed or dtype
                    made._device = made._home = home
                    return made
            elif dtype is int32 and home is not None and x._home is y._home is placement.host:
                kept = _integers(placement, home, function, fixed, x._array, y._array)
                if kept is not None:
                    return kept
        return by_types(x, y, name)

    def by_types(x: Any, y: Any, name: str | None) -> EagerTensor:
        if truths is not None and bool_ in (x._dtype, y._dtype):
            return truths(x, y, name)
        chosen = texts if texts is not None and x._dtype is string else row
        return run(chosen, (x, y), name=name)  # type: ignore[no-any-return]

    return call


def unary(row: Operation) -> Callable[..., EagerTensor]:
    """Make the function of an operation with one input and no other argument."""
    function = row.function
    fixed = row.result
    quick = _quick_types(row)
    floats = float32 in quick

    def call(x: Any, name: str | None = None) -> EagerTensor:
        if type(x) is not EagerTensor:
            x = to_tensor(x)
        dtype = x._dtype
        if floats if dtype is float32 else dtype in quick:
            placement = thread.state.placement
            if placement is None or placement.version != _context.flags_version:
                placement = current_placement()
            home = placement.home
            if x._home is home and (dtype is not int32 or home.kind == "CPU"):
                try:
                    array = placement.compute(function, x._array)
                except (ValueError, MemoryError):
                    pass  # ``run`` says what is wrong, where no exception with frames of ours is its context.
                else:
                    if type(array) is not _ndarray and home.library is None:
                        array = placement.compute(np.asarray, array)
                    made = EagerTensor()
                    made._array = array
                    made._dtype = fixed or BY_NUMPY[array.dtype]
                    made._device = made._home = home
                    return made
            elif dtype is int32 and home is not None and x._home is placement.host:
                kept = _integers(placement, home, function, fixed, x._array)
                if kept is not None:
                    return kept
        return run(row, (x,), name=name)  # type: ignore[no-any-return]

    return call


def _integers(
    placement: Placement, device: Device, function: Callable[..., Any], fixed: DType | None, *arrays: Any
) -> EagerTensor | None:
    """Compute int32 for a GPU, which keeps it in host memory; ``None`` where ``run`` must do it."""
    if device.kind != "GPU":
        return None
    try:
        array = placement.run_on_host(function, *arrays)
        if type(array) is not _ndarray:
            array = placement.run_on_host(np.asarray, array)
    except (ValueError, MemoryError):
        return None
    return tensor_of(array, fixed or BY_NUMPY[array.dtype], device, placement.host)


def _quick_types(row: Operation) -> frozenset[DType]:
    """Return the element types of the fast path: texts have kernels on CPUs only, and ``run`` copies to the host."""
    if row.name in HOST_ONLY:
        return frozenset()
    return frozenset(dtype for dtype in BY_NUMPY.values() if dtype is not string and has_kernel(row, dtype))


__all__ = ["binary", "public", "public_binary", "public_unary", "unary"]
