"""Where the extreme elements along an axis are."""

from collections.abc import Callable
from typing import Any

import numpy as np

from allotment.tf.ops.arguments.axes import axis_fault, check_whole
from allotment.tf.ops.arguments.integers import scalar_argument
from allotment.tf.ops.array.array import widened
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output, unknown
from allotment.tf.ops.table import Host, Operation, dims, operation
from allotment.tf.ops.types.element_types import check_attribute
from allotment.tf.tensors.dtype import BY_NUMPY, DType, as_dtype, int64
from allotment.tf.tensors.tensor import EagerTensor


def _position(find: Callable[..., Any], worst: float) -> Callable[[Array, int, np.dtype[Any]], Any]:
    def function(array: Array, axis: int, dtype: np.dtype[Any]) -> Any:
        if array.dtype.kind == "f":
            # NaN are passed over.
            nans = np.isnan(array)
            if nans.any():
                array = np.where(nans, array.dtype.type(worst), array)
        return find(array, axis).astype(dtype, copy=False)

    return function


def _fault(array: Array, axis: int, dtype: np.dtype[Any]) -> str | None:
    fault = axis_fault(array, axis)
    if fault is None and array.shape[axis] == 0:
        return f"Reduction axis {axis} is empty in shape {dims(array)}"
    return fault


_fields: Any = {"fault": _fault, "host": Host.NEVER}


def _position_shape(c: Inference, axis: Any, dtype: Any) -> list[Output]:
    dims = c.shape()
    if dims is None:
        return c.one(None, BY_NUMPY[dtype])
    if len(dims) <= 1:
        # Whether it is an axis is left to the session, as in TensorFlow.
        return c.one((), BY_NUMPY[dtype])
    place = c.axis(axis, len(dims), "Dimension")
    rest = unknown(len(dims) - 1) if place is None else dims[:place] + dims[place + 1 :]
    return c.one(rest, BY_NUMPY[dtype])


_argmax = operation("ArgMax", _position(np.argmax, -np.inf), shape=_position_shape, **_fields)
_argmin = operation("ArgMin", _position(np.argmin, np.inf), shape=_position_shape, **_fields)


def argmax(
    input: Any,  # noqa: A002 - TensorFlow's name
    axis: Any = None,
    output_type: Any = int64,
    name: str | None = None,
) -> EagerTensor:
    """The position of the largest element along an axis (0 without ``axis``), the first of several.

    As ``tf.argmax``.

    Args:
        input: Real numbers.
        axis: One axis.
        output_type: int64, int32, int16 or uint16.
        name: Only looked at in error texts.

    Raises:
        InvalidArgumentError: The tensor has no such axis, or nothing along it; another output type.
    """
    if not (axis is None or isinstance(axis, int) or hasattr(axis, "dtype")):
        raise TypeError(f"axis must be int or Tensor with integer datatype, not {axis!r}")
    return _run(_argmax, input, axis, output_type, name)


def argmin(
    input: Any,  # noqa: A002 - TensorFlow's name
    axis: Any = None,
    output_type: Any = int64,
    name: str | None = None,
) -> EagerTensor:
    """The position of the smallest element along an axis. As ``tf.argmin``; see ``argmax``."""
    return _run(_argmin, input, axis, output_type, name)


def _run(row: Operation, tensor: Any, axis: Any, output_type: Any, name: str | None) -> EagerTensor:
    dtype: DType = as_dtype(output_type)
    check_attribute(row.name, "output_type", dtype, name)
    # A type by its name takes TensorFlow's longer way, on which a number is converted without a wish.
    check_whole(row.name, "Tidx", axis, name, is_int32=isinstance(output_type, DType))
    number = 0 if axis is None else scalar_argument(widened(axis), "axis")
    return run(row, (to_tensor(tensor),), number, dtype.numpy, name=name)  # type: ignore[no-any-return]


__all__ = ["argmax", "argmin"]
