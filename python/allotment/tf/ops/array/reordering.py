"""Operations that change the order of elements along axes."""

from typing import Any

import numpy as np

from allotment import errors
from allotment.tf.ops.arguments.axes import check_whole
from allotment.tf.ops.arguments.integers import (
    attribute_argument,
    axis_of,
    has_axes,
    kernel_error,
    numbers_argument,
)
from allotment.tf.ops.arrays import Array, owned
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.deferred import Deferred, is_known
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output, numbers
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.table import operation
from allotment.tf.tensors.tensor import EagerTensor, Tensor


def _reverse_fault(array: Array, axes: tuple[int, ...], scalar: bool) -> str | None:
    if array.ndim == 0 or array.size == 0:
        return None
    if scalar:
        return "'dims' must be 1-dimension, not 0"
    seen = set()
    for index, axis in enumerate(axes):
        if not -array.ndim <= axis < array.ndim:
            return f"'axis'[{index}] = {axis} is out of valid range [0, {array.ndim - 1}]"
        place = axis_of(axis, array.ndim)
        if place in seen:
            return f"axis {place} specified more than once."
        seen.add(place)
    return None


def _reversed(array: Array, axes: tuple[int, ...], scalar: bool) -> Array:
    # TensorFlow does not look at the axes of a scalar or of nothing.
    return np.flip(array, axes).copy() if array.ndim and array.size else array.copy()


def _reverse_shape(c: Inference, axes: Any, scalar: bool) -> list[Output]:
    dims = c.shape()
    if scalar:
        c.refuse("Shape must be rank 1 but is rank 0")
    if dims is not None and is_known(axes):
        places = [c.axis(axis, len(dims)) for axis in axes]
        if len(set(places)) != len(places):
            c.refuse(f"axis specified more than once: {list(axes)}")
    return c.one(c.inputs[0]._shape)


_reverse = operation(
    "ReverseV2",
    _reversed,
    shape=_reverse_shape,
    fault=_reverse_fault,
)


def reverse(tensor: Any, axis: Any, name: str | None = None) -> EagerTensor:
    """Turn axes around, which are a list even if there is one. As ``tf.reverse``."""
    check_whole("ReverseV2", "Tidx", axis, name)
    if isinstance(axis, Tensor):
        scalar = rank_of(axis) == 0
    else:
        scalar = not isinstance(axis, list | tuple) and not np.ndim(axis)
    return run(  # type: ignore[no-any-return]
        _reverse, (to_tensor(tensor),), numbers_argument(axis, "axis"), scalar, name=name
    )


def _roll_fault(array: Array, shifts: tuple[int, ...], axes: tuple[int, ...]) -> str | None:
    if array.ndim < 1:
        return "input must be 1-D or higher"
    if len(shifts) != len(axes):
        return "shift and axis must have the same size"
    for axis in axes:
        if not -array.ndim <= axis < array.ndim:
            return f"axis {axis} is out of range"
    return None


def _roll_shape(c: Inference, shift: Any, axis: Any) -> list[Output]:
    c.at_least(0, 1)
    shifts, axes = numbers(shift), numbers(axis)
    if shifts is not None and axes is not None and len(shifts) != len(axes):
        c.refuse(f"Shapes must be equal, but there are {len(shifts)} shifts and {len(axes)} axes")
    return c.one(c.inputs[0]._shape)


_roll = operation("Roll", np.roll, shape=_roll_shape, fault=_roll_fault)


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> EagerTensor:  # noqa: A002
    """Move elements along axes; what leaves at one end comes in at the other. As ``tf.roll``."""
    check_whole("Roll", "Tshift", shift, name, is_int32=False)
    check_whole("Roll", "Taxis", axis, name, is_int32=False)
    shifts: Any = numbers_argument(shift, "shift")
    axes: Any = numbers_argument(axis, "axis")
    if has_axes(shift) != has_axes(axis) and Deferred not in (type(shifts), type(axes)):
        raise kernel_error(errors.InvalidArgumentError, "shift and axis must have the same size")
    return run(_roll, (to_tensor(input),), shifts, axes, name=name)  # type: ignore[no-any-return]


def _reverse_sequence_fault(array: Array, lengths: Array, seq: int, batch: int) -> str | None:
    if lengths.ndim != 1:
        return f"seq_lens input must be 1-dim, not {lengths.ndim}"
    for what, axis in (("batch_dim", batch), ("seq_dim", seq)):
        if not -array.ndim <= axis < array.ndim:
            return f"{what} must be < input rank ( {axis} vs. {array.ndim})"
    seq, batch = axis_of(seq, array.ndim), axis_of(batch, array.ndim)
    if seq == batch:
        return f"batch_dim == seq_dim == {seq}"
    if len(lengths) != array.shape[batch]:
        return f"Length of seq_lengths != input.dims({batch}), ({len(lengths)} vs. {array.shape[batch]})"
    for index, length in enumerate(lengths.tolist()):
        if length < 0:
            return f"seq_lens({index}) < 0"
        if length > array.shape[seq]:
            return f"seq_lens({index}) > input.dims({seq})"
    return None


def _reverse_sequence(array: Array, lengths: Array, seq: int, batch: int) -> Array:
    seq, batch = axis_of(seq, array.ndim), axis_of(batch, array.ndim)
    places = np.arange(array.shape[seq], like=lengths)
    cut = lengths[:, np.newaxis]
    # One row of places for each batch entry: the first `length` of them run backwards.
    places = np.where(places < cut, cut - 1 - places, places)
    if batch > seq:
        places = places.T
    kept = [1] * array.ndim
    kept[seq], kept[batch] = array.shape[seq], array.shape[batch]
    return owned(np.take_along_axis(array, places.reshape(kept), seq))


def _reverse_sequence_shape(c: Inference, seq: int, batch: int) -> list[Output]:
    dims, lengths = c.shape(), c.ranked(1, 1)
    if dims is None:
        return c.one(None)
    places = [c.axis(seq, len(dims), "seq_dim"), c.axis(batch, len(dims), "batch_dim")]
    assert places[1] is not None
    batches = c.same(dims[places[1]], lengths[0])
    return c.one((*dims[: places[1]], batches, *dims[places[1] + 1 :]))


_reverse_sequence_row = operation(
    "ReverseSequence",
    _reverse_sequence,
    shape=_reverse_sequence_shape,
    fault=_reverse_sequence_fault,
)


def reverse_sequence(
    input: Any,  # noqa: A002 - the name TensorFlow has
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
) -> EagerTensor:
    """Turn the first elements of each entry around: as many as its length says. As ``tf.reverse_sequence``."""
    lengths = to_tensor(seq_lengths)
    seq = attribute_argument(seq_axis, "seq_axis")
    batch = 0 if batch_axis is None else attribute_argument(batch_axis, "batch_axis")
    return run(  # type: ignore[no-any-return]
        _reverse_sequence_row, (to_tensor(input), lengths), seq, batch, name=name
    )


__all__ = ["reverse", "reverse_sequence", "roll"]
