"""Operations that mark the places that numbers name."""

import math
from typing import Any

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.arguments.integers import (
    attribute_argument,
    axis_of,
    check_scalar,
    has_axes,
    number_argument,
)
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.arrays import Array, full, is_host
from allotment.tf.ops.conversion.ranges import RANGE
from allotment.tf.ops.convert import dtype_of, to_tensor, to_tensor_if_it_fits
from allotment.tf.ops.deferred import Deferred
from allotment.tf.ops.execute import check_types, run
from allotment.tf.ops.inference.shape_functions import Dims, Inference, Output, number
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.table import dims, operation
from allotment.tf.ops.types.element_types import REALS
from allotment.tf.tensors.dtype import as_dtype, float32, int32
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.tensor import EagerTensor


def _one_hot_fault(on: Array, off: Array, indices: Array, depth: int, axis: int) -> str | None:
    if depth < 0:
        return f"depth must be non-negative, got: {depth}"
    if axis != -1 and not 0 <= axis <= indices.ndim:
        return f"Expected axis to be -1 or between [0, {indices.ndim + 1}).  But received: {axis}"
    for what, value in (("on_value", on), ("off_value", off)):
        if value.ndim:
            return f"{what} must be a scalar, but got: {dims(value)}"
    return None


def _one_hot(on: Array, off: Array, indices: Array, depth: int, axis: int) -> Array:
    place = axis_of(axis, indices.ndim + 1)
    shape = (*indices.shape[:place], depth, *indices.shape[place:])
    if is_host(off) and not off.dtype.hasobject and not off:
        # Zeros come without being written.
        made = np.zeros(shape, off.dtype)
    else:
        made = full(shape, off, off.dtype, off)
    before, behind = math.prod(shape[:place]), math.prod(shape[place + 1 :])
    numbers = indices.reshape(before, behind)
    row, column = np.nonzero(np.logical_and(np.greater_equal(numbers, 0), np.less(numbers, depth)))
    made.reshape(before, depth, behind)[row, numbers[row, column], column] = on
    return made


def _one_hot_shape(c: Inference, depth: Any, axis: int) -> list[Output]:
    c.ranked(0, 0)
    c.ranked(1, 0)
    dims: Dims = c.shape(2)
    length = None if type(depth) is Deferred else depth
    if length is not None and length < 0:
        c.refuse(f"Dimension size, given by scalar input 1, must be non-negative but is {length}")
    if dims is None:
        return c.one(None)
    if axis < -1:
        c.refuse(f"axis must be >= -1, but is {axis}")
    # An axis that is too large is refused when the node runs.
    place = len(dims) if axis == -1 else min(axis, len(dims))
    return c.one((*dims[:place], length, *dims[place:]))


_one_hot_row = operation("OneHot", _one_hot, shape=_one_hot_shape, fault=_one_hot_fault)


@in_name_scope("one_hot")
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """Mark the places that numbers stand for along a new axis. As ``tf.one_hot``.

    A number outside of ``depth`` marks nothing.

    Args:
        indices: The numbers.
        depth: The length of the new axis.
        on_value: The mark, 1 unless given.
        off_value: What is where no mark is, 0 unless given.
        axis: Where the new axis is put, -1 for the end.
        dtype: The type of the result; without it that of the values, or float32.
        name: For error texts.

    Raises:
        TypeError: The values have different types, or not ``dtype``.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    on, off = (None if mark is None else to_tensor_if_it_fits(mark, wanted) for mark in (on_value, off_value))
    for what, mark in (("on_value", on), ("off_value", off)):
        if mark is not None and wanted is not None and mark._dtype is not wanted:
            raise TypeError(f"dtype {mark._dtype} of {what} does not match dtype parameter {wanted}")
    wanted = wanted or next((mark._dtype for mark in (on, off) if mark is not None), float32)
    on = to_tensor(1, wanted) if on is None else on
    off = to_tensor(0, wanted) if off is None else off
    if on._dtype is not off._dtype:
        raise TypeError(f"dtype {on._dtype} of on_value does not match dtype {off._dtype} of off_value")
    numbers = to_tensor([] if _is_nothing(indices) else indices, int32 if _is_nothing(indices) else None)
    place = -1 if axis is None else attribute_argument(axis, "axis")
    _check_depth(depth)
    length = number_argument(depth, "depth")
    check_types(_one_hot_row, (on, off, numbers), name)
    check_scalar(depth, "depth")
    return run(_one_hot_row, (on, off, numbers), length, place, name=name)  # type: ignore[no-any-return]


def _check_depth(depth: Any) -> None:
    dtype = dtype_of(depth)
    if dtype is None or dtype is int32:
        return
    if thread.state.graph is None:
        raise ValueError(
            f"Tensor conversion requested dtype int32 for Tensor with dtype {dtype.name}: {depth!r}"
        )
    raise TypeError(
        f"Input 'depth' of 'OneHot' Op has type {dtype.name} that does not match expected type of int32."
    )


def _is_nothing(value: Any) -> bool:
    return isinstance(value, list | tuple) and not value


def _sequence_mask_fault(lengths: Array, limit: int | None) -> str | None:
    return None if limit is None or limit >= 0 else f"maxlen must be >= 0, but got {limit}"


def _longest(lengths: Array) -> int:
    return max(int(np.ceil(lengths.max())), 0) if lengths.size else 0


def _sequence_mask(lengths: Array, limit: int | None) -> Array:
    longest = _longest(lengths) if limit is None else limit
    made: Array = np.less(np.arange(longest, dtype=lengths.dtype, like=lengths), lengths[..., np.newaxis])
    return made


def _sequence_mask_shape(c: Inference, limit: Any) -> list[Output]:
    dims, count = c.shape(), number(limit)
    if count is not None and count < 0:
        c.refuse(f"maxlen must be >= 0, but got {count}")
    if limit is None and (known := c.value(0)) is not None:
        count = _longest(known)
    return c.one(None if dims is None else (*dims, count), bool_)


_sequence_mask_row = operation(
    "SequenceMask",
    _sequence_mask,
    shape=_sequence_mask_shape,
    fault=_sequence_mask_fault,
    takes=REALS.__contains__,
)


@in_name_scope("SequenceMask", "Less")
def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = bool_, name: str | None = None
) -> EagerTensor:
    """For each length, that many times true and then false up to ``maxlen``. As ``tf.sequence_mask``.

    Raises:
        ValueError: ``maxlen`` is no scalar.
    """
    tensor = to_tensor(lengths)
    if maxlen is not None:
        if has_axes(maxlen):
            shape = tuple(to_tensor(maxlen)._array.shape)
            raise ValueError(
                f"Argument `maxlen` must be scalar for sequence_mask, received `maxlen` = {maxlen} with shape "
                f"'{shape}' instead"
            )
        # Its type is the one in which places are counted.
        tensor = cast(tensor, as_dtype(getattr(maxlen, "dtype", int32)))
    check_types(RANGE, (tensor,), name)
    if maxlen is not None:
        maxlen = number_argument(maxlen, "maxlen")
    return cast(run(_sequence_mask_row, (tensor,), maxlen, name=name), dtype)


__all__ = ["one_hot", "sequence_mask"]
