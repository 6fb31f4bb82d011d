"""Operations that take a tensor apart along an axis."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from allotment import errors
from allotment.tf.dispatch import thread
from allotment.tf.ops import faults
from allotment.tf.ops.arguments.integers import (
    attribute_argument,
    axis_of,
    kernel_error,
    numbers_argument,
    scalar_argument,
)
from allotment.tf.ops.array.array import widened
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import dtype_of, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import (
    Inference,
    Output,
    added,
    numbers,
    unknown,
)
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import int8, int32
from allotment.tf.tensors.tensor import EagerTensor


def _slices(array: Array, axis: int) -> list[Array]:
    """Views of the slices along an axis."""
    before: tuple[Any, ...] = (slice(None),) * axis_of(axis, array.ndim)
    return [array[(*before, index, ...)] for index in range(array.shape[axis])]


def _unstack_fault(array: Array, num: int | None, axis: int) -> str | None:
    if not -array.ndim <= axis < array.ndim:
        return f"axis = {axis} not in [{-array.ndim}, {array.ndim})"
    if num is not None and num != array.shape[axis]:
        return f"Input shape axis {axis_of(axis, array.ndim)} must equal {num}, got shape {dims(array)}"
    return None


def _unstack(array: Array, num: int | None, axis: int) -> tuple[Array, ...]:
    return tuple(each.copy() for each in _slices(array, axis))


def _unstack_shape(c: Inference, num: int | None, axis: int) -> list[Output]:
    dims = c.shape()
    if dims is not None:
        place = c.axis(axis, len(dims))
        assert place is not None
        num = c.same(dims[place], num)
        dims = dims[:place] + dims[place + 1 :]
    if num is None:
        c.refuse("Cannot infer argument `num` from shape: it must be known when the graph is built")
    return [(c.dtype(), dims)] * num


_unpack = operation("Unpack", _unstack, shape=_unstack_shape, makes_tuple=True, fault=_unstack_fault)


def unstack(value: Any, num: int | None = None, axis: Any = 0, name: str = "unstack") -> list[EagerTensor]:
    """Take a tensor apart along an axis. As ``tf.unstack``.

    Raises:
        ValueError: The tensor has no such axis. With ``num`` this is an ``InvalidArgumentError``.
        InvalidArgumentError: It has another length there than ``num``.
    """
    tensor = to_tensor(value)
    place, rank = attribute_argument(axis, "axis"), rank_of(tensor)
    count = None if num is None else attribute_argument(num, "num")
    if count is not None and count < 0:
        raise kernel_error(
            errors.InvalidArgumentError,
            f"Value for attr 'num' of {count} must be at least minimum 0{faults.tail('Unpack', name)}",
        )
    if rank is not None and not -rank <= place < rank:
        text = f"Argument `axis` = {place} not in range [{-rank}, {rank})"
        raise ValueError(text) if count is None else kernel_error(errors.InvalidArgumentError, text)
    return list(run(_unpack, (tensor,), count, place, name=name))


def _axis_words(array: Array, axis: int) -> str | None:
    if -array.ndim <= axis < array.ndim:
        return None
    return f"-input rank(-{array.ndim}) <= split_dim < input rank ({array.ndim}), but got {axis}"


def _split_fault(array: Array, num: int, axis: int) -> str | None:
    words = _axis_words(array, axis)
    if words is None and array.shape[axis] % num:
        return (
            "Number of ways to split should evenly divide the split dimension, but got split_dim "
            f"{axis_of(axis, array.ndim)} (size = {array.shape[axis]}) and num_split {num}"
        )
    return words


def _split(array: Array, places: int | Sequence[int], axis: int) -> tuple[Array, ...]:
    return tuple(part.copy() for part in np.split(array, places, axis))


def _split_sizes_fault(array: Array, sizes: tuple[int, ...], axis: int) -> str | None:
    words = _axis_words(array, axis)
    if words is not None:
        return words
    if sizes == (-1,):
        return f"If there is only one output, it must have the same size as the input: {array.shape[axis]}, not -1"
    if sizes.count(-1) > 1:
        return "There can only be one -1 in the input."
    known = sum(size for size in sizes if size != -1)
    for index, size in enumerate(sizes):
        if size < -1:
            return f"Split size at index {index} must be >= 0. Got: {size}"
    if known > array.shape[axis] or (-1 not in sizes and known != array.shape[axis]):
        return (
            "Determined shape must either match input shape along split_dim exactly if fully specified, or be less "
            f"than the size of the input along split_dim if not fully specified.  Got: {known}"
        )
    return None


def _split_sizes(array: Array, sizes: tuple[int, ...], axis: int) -> tuple[Array, ...]:
    rest = array.shape[axis] - sum(size for size in sizes if size != -1)
    places = np.cumsum([rest if size == -1 else size for size in sizes])[:-1]
    return _split(array, places.tolist(), axis)


def _split_shape(c: Inference, count: int, axis: Any) -> list[Output]:
    dims = c.at_least(0, 1)
    if dims is None:
        return [(c.dtype(), None)] * count
    place = c.axis(axis, len(dims), "split_dim")
    if place is None:
        return [(c.dtype(), unknown(len(dims)))] * count
    whole = dims[place]
    if whole is not None and whole % count:
        c.refuse(
            f"Dimension size must be evenly divisible by {count} but is {whole}. Number of ways to split should evenly "
            f"divide the split dimension"
        )
    part = None if whole is None else whole // count
    return [(c.dtype(), (*dims[:place], part, *dims[place + 1 :]))] * count


def _split_sizes_shape(c: Inference, sizes: Any, axis: Any) -> list[Output]:
    dims, parts = c.at_least(0, 1), numbers(sizes)
    if parts is None:
        c.refuse(
            "Cannot infer argument `num` from shape: how many sizes there are must be known when the graph is built"
        )
    if dims is None:
        return [(c.dtype(), None)] * len(parts)
    place = c.axis(axis, len(dims), "split_dim")
    if place is None:
        return [(c.dtype(), unknown(len(dims)))] * len(parts)
    return [(c.dtype(), (*dims[:place], part, *dims[place + 1 :])) for part in _parts(c, parts, dims[place])]


def _parts(c: Inference, sizes: tuple[int | None, ...], whole: int | None) -> list[int | None]:
    """The lengths of the parts; -1 is what is left."""
    if sizes.count(-1) > 1:
        c.refuse("can only have one -1 in size_splits")
    rest = [each for each in sizes if each != -1]
    total = added(*rest)
    if total is None or whole is None:
        return [None if each == -1 else each for each in sizes]
    if total > whole or (-1 not in sizes and total != whole):
        c.refuse(f"can't split axis of size {whole} into pieces of size [{','.join(map(str, sizes))}]")
    return [whole - total if each == -1 else each for each in sizes]


_split_row = operation("Split", _split, shape=_split_shape, makes_tuple=True, fault=_split_fault)


_split_sizes_row = operation(
    "SplitV", _split_sizes, shape=_split_sizes_shape, makes_tuple=True, fault=_split_sizes_fault
)


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[EagerTensor]:
    """Cut a tensor along an axis. As ``tf.split``.

    Args:
        value: The tensor.
        num_or_size_splits: Into how many parts of one length, or a list of lengths; one of these may be -1 and is
            what is left.
        axis: The axis.
        num: Only looked at in graph mode.
        name: For error texts.

    Raises:
        InvalidArgumentError: The parts do not add up to the tensor.
        ValueError: A number that is not whole.
    """
    tensor, place = to_tensor(value), scalar_argument(axis, "axis")
    _check_axis_type(axis, isinstance(num_or_size_splits, int | np.integer))
    if isinstance(num_or_size_splits, int | np.integer):
        parts = int(num_or_size_splits)
        if parts < 1:
            raise faults.below_minimum("Split", "num_split", parts, 1, name)
        return list(run(_split_row, (tensor,), parts, place, name=name))
    if not hasattr(num_or_size_splits, "__len__") or getattr(num_or_size_splits, "shape", None) == ():
        raise ValueError(
            "Rank-0 tensors are not supported as the num_or_size_splits argument to split. Argument provided: "
            f"{num_or_size_splits}"
        )
    if dtype_of(num_or_size_splits) is int8:
        num_or_size_splits = widened(num_or_size_splits)
    sizes = numbers_argument(num_or_size_splits, "num_or_size_splits")
    return list(run(_split_sizes_row, (tensor,), sizes, place, name=name))


def _check_axis_type(axis: Any, into_equal_parts: bool) -> None:
    dtype = dtype_of(axis)
    if dtype is None or dtype is int32:
        return
    if thread.state.graph is not None:
        op = "Split" if into_equal_parts else "SplitV"
        raise TypeError(
            f"Input 'split_dim' of '{op}' Op has type {dtype.name} that does not match expected type of int32."
        )
    where = "#0" if into_equal_parts else "#2"
    raise errors.InvalidArgumentError(
        None,
        None,
        f"cannot compute Split as input {where}(zero-based) was expected to be a int32 tensor but is a "
        f"{dtype.name} tensor",
    )


__all__ = ["split", "unstack"]
