"""How often each whole number occurs."""

from typing import Any

import numpy as np

from allotment.tf.ops.arguments.integers import has_axes, number_argument
from allotment.tf.ops.arguments.scalars import attribute_flag
from allotment.tf.ops.arrays import Array, size_fault
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.deferred import is_known
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output, number
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.table import Host, dims, operation
from allotment.tf.tensors.dtype import BY_NUMPY, as_dtype, int32
from allotment.tf.tensors.tensor import EagerTensor


def _size(array: Array, minlength: int | None, maxlength: int | None) -> int:
    size = max(int(array.max()) + 1 if array.size else 0, minlength or 0)
    return size if maxlength is None else min(size, maxlength)


def _bincount(
    array: Array,
    *weights: Array,
    dtype: np.dtype[Any],
    minlength: int | None,
    maxlength: int | None,
    by_row: bool,
    binary: bool,
) -> Array:
    size = _size(array, minlength, maxlength)
    rows = array if by_row and array.ndim == 2 else array.reshape(1, -1)
    counted = np.less(rows, size)
    # One number for each place of the result, row after row.
    places = (rows + size * np.arange(len(rows), like=array)[:, None])[counted]
    counts = np.zeros(len(rows) * size, dtype, like=array)
    if binary:
        counts[places] = 1
    elif weights:
        np.add.at(counts, places, weights[0].reshape(rows.shape)[counted])
    else:
        np.copyto(counts, np.bincount(places, minlength=counts.size), casting="unsafe")
    return counts.reshape(len(rows), size) if by_row and array.ndim == 2 else counts


def _fault(
    array: Array,
    *weights: Array,
    dtype: np.dtype[Any],
    minlength: int | None,
    maxlength: int | None,
    by_row: bool,
    binary: bool,
) -> str | None:
    if maxlength is not None and maxlength < 0:
        return f"maxlength must not be negative, not {maxlength}"
    if array.size and array.min() < 0:
        return "Input arr must be non-negative!"
    if by_row and array.ndim > 2:
        return f"Shape must be at most rank 2 but is rank {array.ndim}"
    if weights and weights[0].shape != array.shape:
        return (
            "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all weights "
            f"equal to 1. Received {dims(weights[0])}"
        )
    size = _size(array, minlength, maxlength)
    if size > np.iinfo(np.int32).max:
        return f"size ({size}) must be less than 2**31"
    return size_fault((len(array) if by_row and array.ndim == 2 else 1, size), np.int64)


def _bincount_shape(
    c: Inference, dtype: Any, minlength: Any, maxlength: Any, by_row: bool, binary: bool
) -> list[Output]:
    result = BY_NUMPY[np.dtype(dtype)]
    dims = c.shape()
    if by_row and dims is not None and len(dims) > 2:
        c.refuse(f"Shape must be at most rank 2 but is rank {len(dims)}")
    if len(c.inputs) > 1:
        c.merged(dims, c.shape(1))
    # Between both bounds the largest number decides.
    count = number(minlength) if minlength is not None and minlength is maxlength else None
    if not by_row:
        return c.one((count,), result)
    return c.one(None if dims is None else (dims[0], count) if len(dims) == 2 else (count,), result)


_row = operation("DenseBincount", _bincount, shape=_bincount_shape, fault=_fault, host=Host.NEVER)


@in_name_scope("bincount", None)
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = int32,
    name: str | None = None,
    axis: Any = None,
    binary_output: bool = False,
) -> EagerTensor:
    """Count how often each whole number from 0 on occurs. As ``tf.math.bincount``.

    Args:
        arr: int32 or int64, none negative.
        weights: What each element counts, instead of 1; the result has their type.
        minlength: The least length of the result.
        maxlength: Its greatest; larger numbers are left out.
        dtype: Element type of the result without weights.
        name: Only looked at in error texts.
        axis: ``None`` or 0 to count over everything, -1 to count each row of a matrix by itself.
        binary_output: Only say whether a number occurs.

    Raises:
        InvalidArgumentError: Something is negative, or the weights have another shape.
        ValueError: Another axis, or weights with ``binary_output``.
    """
    binary = attribute_flag(binary_output, "binary_output")
    if binary and weights is not None:
        raise ValueError("Arguments `binary_output` and `weights` are mutually exclusive.")
    array = to_tensor(arr)
    is_whole = not isinstance(axis, str | float) and not has_axes(axis)
    number = number_argument(axis, "axis") if is_whole and axis is not None else None
    if not is_whole or number not in (None, 0, -1):
        raise ValueError(
            f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported."
        )
    inputs = (array,) if weights is None else (array, to_tensor(weights))
    return run(  # type: ignore[no-any-return]
        _row,
        inputs,
        name=name,
        dtype=inputs[-1]._dtype.numpy if weights is not None else as_dtype(dtype).numpy,
        minlength=_length("minlength", minlength),
        maxlength=_length("maxlength", maxlength),
        by_row=number == -1,
        binary=binary,
    )


def _length(what: str, value: Any) -> int | None:
    if value is None:
        return None
    length = number_argument(value, what)
    if is_known(length) and length < 0:
        raise ValueError(f"{what} must not be negative, not {value!r}")
    return length


__all__ = ["bincount"]
