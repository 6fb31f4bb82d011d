"""Operations that take a part of a tensor. The result has memory of its own."""

from typing import Any

import numpy as np

from allotment import errors
from allotment.tf.ops.arguments.integers import kernel_error, numbers_argument
from allotment.tf.ops.array.array import widened
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import dtype_of, to_tensor
from allotment.tf.ops.deferred import is_known
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Dims, Inference, Output, number, numbers, unknown
from allotment.tf.ops.table import operation
from allotment.tf.ops.types.element_types import check_attribute
from allotment.tf.tensors.dtype import float32, int16
from allotment.tf.tensors.tensor import EagerTensor

#: A subscript of NumPy: whole numbers, slices of them, ``...`` and ``None``.
Index = tuple[Any, ...]


def view(array: Array, index: Index) -> Array:
    """The part of an array, in the array's memory."""
    # With the ellipsis, one element is an array, too, and not a scalar.
    return array[index] if ... in index else array[(*index, ...)]


def take(array: Array, index: Index) -> Array:
    """The part of an array, copied."""
    return view(array, index).copy()


def index_fault(array: Array, index: Index) -> str | None:
    """TensorFlow's words for an index that does not fit an array, or ``None``."""
    axes = [each for each in index if each is not None and each is not ...]
    if index.count(...) > 1:
        return "Multiple ellipses in slice spec not allowed"
    if array.ndim == 0 and axes:
        return "Attempting to slice scalar input."
    if len(axes) > array.ndim:
        return f"Index out of range using input dim {array.ndim}; input has only {array.ndim} dims"
    axis = 0
    for each in index:
        if each is None:
            continue
        if each is ...:
            axis += array.ndim - len(axes)
            continue
        length = array.shape[axis]
        if isinstance(each, slice):
            if each.step == 0:
                return f"strides[{axis}] must be non-zero"
        elif not -length <= each < length:
            return f"slice index {each + length if each < 0 else each} of dimension {axis} out of bounds."
        axis += 1
    return None


def _strided_slice_shape(c: Inference, index: tuple[Any, ...]) -> list[Output]:
    return c.one(part_shape(c, c.shape(), index))


def part_shape(c: Inference, dims: Dims, index: tuple[Any, ...]) -> Dims:
    """The shape of what an index takes out of a tensor."""
    # Not by `in`: what is known only in a session cannot be compared.
    ellipses = sum(each is ... for each in index)
    if ellipses > 1:
        c.refuse("Multiple ellipses in slice spec not allowed")
    named = sum(each is not None and each is not ... for each in index)
    if dims is None:
        return None
    if named > len(dims):
        c.refuse(f"Index out of range using input dim {len(dims)}; input has only {len(dims)} dims")
    made: list[int | None] = []
    axis = 0
    for each in index if ellipses else (*index, ...):
        if each is None:
            made.append(1)
        elif each is ...:
            rest = len(dims) - named
            made += dims[axis : axis + rest]
            axis += rest
        elif isinstance(each, slice):
            made.append(_interval(c, dims[axis], each, axis))
            axis += 1
        else:
            _check_place(c, dims[axis], number(each), axis)
            axis += 1
    return tuple(made)


def _interval(c: Inference, length: int | None, part: slice, axis: int) -> int | None:
    """Return the number of elements of an axis that a slice takes."""
    if number(part.step) == 0:
        c.refuse(f"strides[{axis}] must be non-zero")
    if not is_known(part):
        return None
    if length is not None:
        return len(range(*part.indices(length)))
    # All of an axis of unknown length may be of any.
    return None


def _check_place(c: Inference, length: int | None, place: int | None, axis: int) -> None:
    """Refuse the number of an element that the axis does not have."""
    if length is not None and place is not None and not -length <= place < length:
        c.refuse(f"slice index {place} of dimension {axis} out of bounds.")


strided_slice_row = operation("StridedSlice", take, shape=_strided_slice_shape, fault=index_fault)


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """Take a part of a tensor, as ``tensor[begin:end:strides]`` does. As ``tf.strided_slice``.

    A set bit of a mask is about one axis: its begin or end is not looked at, it stands for ``...``, it is a new one,
    or only its begin is taken and the axis goes.
    """
    begins, ends = _vector("StridedSlice", begin, "begin", name), _vector("StridedSlice", end, "end", name)
    steps = (1,) * len(begins) if strides is None else _vector("StridedSlice", strides, "strides", name)
    if not len(begins) == len(ends) == len(steps):
        raise kernel_error(
            errors.InvalidArgumentError,
            f"begin, end and strides must be of one length, not {len(begins)}, {len(ends)} and {len(steps)}",
        )
    index: list[Any] = []
    for place, (first, last, step) in enumerate(zip(begins, ends, steps, strict=True)):
        bit = 1 << place
        if ellipsis_mask & bit:
            index.append(...)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            if step < 1:
                raise kernel_error(
                    errors.InvalidArgumentError, f"only stride 1 allowed on non-range indexing, not {step}"
                )
            index.append(first)
        else:
            index.append(slice(None if begin_mask & bit else first, None if end_mask & bit else last, step))
    return run(  # type: ignore[no-any-return]
        strided_slice_row, (to_tensor(input_),), tuple(index), name=name
    )


def _vector(op: str, value: Any, what: str, name: str | None) -> tuple[int, ...]:
    """Whole numbers from a list, an array or a tensor of rank 1.

    Raises:
        InvalidArgumentError: It is no vector, or an empty list, which is of floats for want of other elements.
    """
    if isinstance(value, list | tuple) and not value:
        check_attribute(op, "Index", float32, name)
    if isinstance(value, int) or (isinstance(value, np.ndarray | EagerTensor) and value.ndim == 0):
        raise kernel_error(errors.InvalidArgumentError, f"{what} must be a vector, not {value!r}")
    return numbers_argument(
        widened(value) if op == "StridedSlice" and dtype_of(value) is int16 else value, what
    )


def _slice_fault(array: Array, begins: tuple[int, ...], sizes: tuple[int, ...]) -> str | None:
    if not len(begins) == len(sizes) == array.ndim:
        return (
            f"Expected begin and size arguments to be 1-D tensors of size {array.ndim}, but got shapes "
            f"[{len(begins)}] and [{len(sizes)}] instead."
        )
    for axis, (begin, size, length) in enumerate(zip(begins, sizes, array.shape, strict=True)):
        if not 0 <= begin <= length:
            return f"Expected begin[{axis}] in [0, {length}], but got {begin}"
        if size != -1 and not 0 <= size <= length - begin:
            return f"Expected size[{axis}] in [0, {length - begin}], but got {size}"
    return None


def _slice(array: Array, begins: tuple[int, ...], sizes: tuple[int, ...]) -> Array:
    pairs = zip(begins, sizes, strict=True)
    return take(array, tuple(slice(begin, None if size == -1 else begin + size) for begin, size in pairs))


def _slice_shape(c: Inference, begins: Any, sizes: Any) -> list[Output]:
    dims, first, count = c.shape(), numbers(begins), numbers(sizes)
    rank = next((len(each) for each in (dims, first, count) if each is not None), None)
    if rank is None:
        return c.one(None)
    for each in (dims, first, count):
        if each is not None and len(each) != rank:
            c.refuse(f"Shape must be rank {len(each)} but is rank {rank}")
    triples = zip(
        dims or unknown(rank) or (), first or unknown(rank) or (), count or unknown(rank) or (), strict=True
    )
    return c.one(tuple(_run_length(c, *triple, axis) for axis, triple in enumerate(triples)))


def _run_length(
    c: Inference, length: int | None, begin: int | None, size: int | None, axis: int
) -> int | None:
    """Return the number of elements of an axis from a beginning on; a size of -1 takes all."""
    # Whether there are so many elements is left to the session, as in TensorFlow, to which -1 is an unknown number.
    for what, given in (("begin", begin), ("size", size)):
        if given is not None and given < -1:
            c.refuse(f"{what}[{axis}] must be at least -1, but is {given}")
    if size != -1:
        return size
    if length is None or begin is None or begin == -1:
        return None
    if begin > length:
        c.refuse(f"Expected begin[{axis}] in [0, {length}], but got {begin}")
    return length - begin


_slice_row = operation("Slice", _slice, shape=_slice_shape, fault=_slice_fault)


def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> EagerTensor:
    """Take a part of a tensor by where it begins and how long it is, -1 for all that is left. As ``tf.slice``."""
    begins, sizes = _vector("Slice", begin, "begin", name), _vector("Slice", size, "size", name)
    return run(  # type: ignore[no-any-return]
        _slice_row, (to_tensor(input_),), begins, sizes, name=name
    )


slice_.__name__ = slice_.__qualname__ = "slice"


def whole_axes(axes: int) -> tuple[Any, ...]:
    """Between square brackets: all of each of some axes."""
    return (slice(None),) * axes


__all__ = ["index_fault", "slice_", "strided_slice", "strided_slice_row", "take", "view"]
