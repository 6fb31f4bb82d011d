"""Operations that move the axes of a tensor, or its elements along them."""

from typing import Any

import numpy as np

from allotment import errors
from allotment.tf.ops.arguments.axes import check_whole
from allotment.tf.ops.arguments.integers import (
    attribute_argument,
    axis_of,
    kernel_error,
    number_argument,
    numbers_argument,
)
from allotment.tf.ops.arrays import Array, owned
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.deferred import Deferred, is_known
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output, numbers, unknown
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.table import operation
from allotment.tf.tensors.tensor import EagerTensor, Tensor


def _transpose_fault(array: Array, perm: tuple[int, ...] | None) -> str | None:
    if perm is None:
        return None
    if len(perm) != array.ndim:
        return (
            f"transpose expects a vector of size {array.ndim}. But input(1) is a vector of size {len(perm)}"
        )
    for axis in perm:
        if not -array.ndim <= axis < array.ndim:
            return f"{axis} is out of range [0 .. {array.ndim})"
    for axis in range(array.ndim):
        if axis not in perm and axis - array.ndim not in perm:
            return f"{axis} is missing from {{{','.join(map(str, perm))}}}."
    return None


def _transpose(array: Array, perm: tuple[int, ...] | None) -> Array:
    return np.transpose(array, perm).copy()


def _conjugate_transpose(array: Array, perm: tuple[int, ...] | None) -> Array:
    return np.asarray(np.conjugate(np.transpose(array, perm), order="C"))


def _transpose_shape(c: Inference, perm: Any) -> list[Output]:
    dims = c.shape()
    if perm is None:
        return c.one(None if dims is None else dims[::-1])
    order = numbers(perm)
    if order is None or dims is None:
        return c.one(unknown(len(dims) if dims is not None else None if order is None else len(order)))
    if len(order) != len(dims):
        c.refuse(f"Dimension must be {len(dims)} but is {len(order)}")
    if None in order:
        return c.one(unknown(len(dims)))
    places = [c.axis(axis, len(dims), "perm dim") for axis in order]
    if len(set(places)) != len(places):
        c.refuse(f"perm must name each axis once, not {list(order)}")
    return c.one(tuple(dims[place] for place in places if place is not None))


_transpose_row = operation("Transpose", _transpose, shape=_transpose_shape, fault=_transpose_fault)
_conjugate_row = operation(
    "ConjugateTranspose", _conjugate_transpose, shape=_transpose_shape, fault=_transpose_fault
)


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> EagerTensor:
    """Put the axes in another order, the reverse one unless ``perm`` says which. As ``tf.transpose``."""
    tensor = to_tensor(a)
    check_whole("Transpose", "Tperm", perm, name)
    if isinstance(perm, int) or (isinstance(perm, np.ndarray | EagerTensor) and perm.ndim == 0):
        raise kernel_error(errors.InvalidArgumentError, f"perm must be a vector, not {perm!r}")
    order = None if perm is None else numbers_argument(perm, "perm")
    row = _conjugate_row if conjugate and tensor._dtype.is_complex else _transpose_row
    return run(row, (tensor,), order, name=name)  # type: ignore[no-any-return]


def _expand_fault(array: Array, axis: int) -> str | None:
    if -array.ndim - 1 <= axis <= array.ndim:
        return None
    return f"Tried to expand dim index {axis} for tensor with {array.ndim} dimensions."


def _expand_shape(c: Inference, axis: Any) -> list[Output]:
    dims = c.shape()
    if dims is None:
        return c.one(None)
    rank = len(dims)
    if type(axis) is Deferred:
        return c.one(unknown(rank + 1))
    if not -rank - 1 <= axis <= rank:
        c.refuse(f"dim {axis} not in the interval [{-rank - 1}, {rank}].")
    place = axis + rank + 1 if axis < 0 else axis
    return c.one((*dims[:place], 1, *dims[place:]))


# The results of these two share the input's memory, as TensorFlow's do.
_expand_dims = operation("ExpandDims", np.expand_dims, shape=_expand_shape, fault=_expand_fault)


def expand_dims(input: Any, axis: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - TensorFlow's name
    """Add an axis of length 1. As ``tf.expand_dims``."""
    check_whole("ExpandDims", "Tdim", axis, name)
    return run(  # type: ignore[no-any-return]
        _expand_dims, (to_tensor(input),), number_argument(axis, "axis"), name=name
    )


def _squeeze_fault(array: Array, axes: tuple[int, ...]) -> str | None:
    for axis in axes:
        if not -array.ndim <= axis < array.ndim:
            return f"Tried to squeeze dim index {axis} for tensor with {array.ndim} dimensions."
    for axis in axes:
        if array.shape[axis] != 1:
            place = axis_of(axis, array.ndim)
            return f"Can not squeeze dim[{place}], expected a dimension of 1, got {array.shape[axis]}"
    return None


def _squeeze(array: Array, axes: tuple[int, ...]) -> Array:
    return np.squeeze(array, tuple({axis_of(axis, array.ndim) for axis in axes}) if axes else None)


def _squeeze_shape(c: Inference, axes: Any) -> list[Output]:
    dims = c.shape()
    if dims is None:
        return c.one(None)
    if not axes:
        # Which axes go depends on the lengths.
        return c.one(None if None in dims else tuple(length for length in dims if length != 1))
    gone = {c.axis(axis, len(dims), "squeeze dim") for axis in axes}
    for place in gone:
        assert place is not None
        if dims[place] not in (None, 1):
            c.refuse(f"Can not squeeze dim[{place}], expected a dimension of 1, got {dims[place]}")
    return c.one(tuple(length for place, length in enumerate(dims) if place not in gone))


_squeeze_row = operation("Squeeze", _squeeze, shape=_squeeze_shape, fault=_squeeze_fault)


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> EagerTensor:  # noqa: A002
    """Take away axes of length 1: all of them, or those named. As ``tf.squeeze``."""
    listed = [] if axis is None else axis if isinstance(axis, list | tuple) or np.ndim(axis) else [axis]
    axes = tuple(attribute_argument(each, "axis") for each in listed)
    return run(_squeeze_row, (to_tensor(input),), axes, name=name)  # type: ignore[no-any-return]


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
    shifts, axes = numbers_argument(shift, "shift"), numbers_argument(axis, "axis")
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
    places = np.arange(array.shape[seq])
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


__all__ = [
    "expand_dims",
    "reverse",
    "reverse_sequence",
    "roll",
    "squeeze",
    "transpose",
]
