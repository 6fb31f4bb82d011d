"""Operations on the order of elements, and on which of them are equal."""

from typing import Any, NamedTuple

import numpy as np

from allotment.devices.placement import thread
from allotment.tf.ops.arguments.integers import attribute_argument, axis_of, dtype_of, number_argument
from allotment.tf.ops.array.array import widened
from allotment.tf.ops.arrays import Array, owned
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.nan_order import LONGEST, largest_places
from allotment.tf.ops.inference.shape_functions import Inference, Output, number
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.table import dims, operation
from allotment.tf.ops.types.element_types import check_attribute
from allotment.tf.tensors.dtype import DType, as_dtype, int16, int32
from allotment.tf.tensors.tensor import EagerTensor


class TopKV2(NamedTuple):
    """The largest elements and where they were."""

    values: EagerTensor
    indices: EagerTensor


class Unique(NamedTuple):
    """The different elements, and which of them stood where."""

    y: EagerTensor
    idx: EagerTensor


class UniqueWithCounts(NamedTuple):
    """The different elements, which of them stood where, and how often each did."""

    y: EagerTensor
    idx: EagerTensor
    count: EagerTensor  # type: ignore[assignment]  # the name TensorFlow has


def _order(array: Array, axis: int, descending: bool) -> Array:
    """Where the elements come from that stand in order; equal ones keep theirs."""
    if array.dtype.itemsize <= 4 and array.size:
        return _order_by_keys(array, axis, descending)
    if not descending:
        return np.argsort(array, axis, kind="stable")
    # Sorted upwards from the far end and turned around: so the first of equal elements stays the first.
    places = np.argsort(np.flip(array, axis), axis, kind="stable")
    np.subtract(array.shape[axis] - 1, places, out=places)
    return np.flip(places, axis)


def _order_by_keys(array: Array, axis: int, descending: bool) -> Array:
    """Sort integers of 64 bits that have the element above its place: NumPy has vector code for that.

    Its stable sorts of places have none, and take eight times as long.
    """
    keys = np.moveaxis(_as_integers(array), axis, -1).astype(np.int64, "C")
    if descending:
        np.invert(keys, out=keys)
    np.left_shift(keys, 32, out=keys)
    np.bitwise_or(keys, np.arange(keys.shape[-1]), out=keys)
    keys.sort(-1)
    np.bitwise_and(keys, 0xFFFFFFFF, out=keys)
    return np.moveaxis(keys, -1, axis)


def _as_integers(array: Array) -> Array:
    """Signed integers in the order of the elements; a NaN is the largest, and both zeros are equal."""
    if array.dtype.kind == "u":
        return np.subtract(array, 1 << 31, dtype=np.int64)
    if array.dtype.kind == "i":
        return array
    bits = np.add(array, 0, dtype=np.float32).view(np.int32)
    np.copyto(bits, np.iinfo(np.int32).max, where=np.isnan(array))
    # Negative floats are in the opposite order of their bits but for the sign.
    np.bitwise_xor(bits, np.bitwise_and(np.right_shift(bits, 31), np.iinfo(np.int32).max), out=bits)
    return bits


def _order_with_nans(order: Array, array: Array, axis: int, count: int) -> None:
    """Change the order of rows that have a NaN to that of the comparisons of TensorFlow's kernel."""
    if count == array.shape[axis] > LONGEST:
        return
    places, rows = np.moveaxis(order, axis, -1), np.moveaxis(array, axis, -1)
    with_nans = np.asarray(np.isnan(rows).any(-1))
    for row in np.ndindex(with_nans.shape):
        if with_nans[row]:
            places[row][:count] = largest_places(rows[row].tolist(), count)


def _top_k_fault(array: Array, k: int | None, axis: int, descending: bool, dtype: DType) -> str | None:
    if array.ndim < 1:
        return f"input must be >= 1-D, got shape {dims(array)}"
    if not -array.ndim <= axis < array.ndim:
        return f"slice index {axis + array.ndim if axis < 0 else axis} of dimension 0 out of bounds."
    if k is not None and k < 0:
        return f"Need k >= 0, got {k}"
    if k is not None and array.shape[axis] < k:
        return f"input must have at least k columns. Had {array.shape[axis]}, needed {k}"
    return None


def _top_k(array: Array, k: int | None, axis: int, descending: bool, dtype: DType) -> tuple[Array, Array]:
    count = array.shape[axis] if k is None else k
    order = None if k is None or axis != -1 or not descending else _order_of_largest(array, k)
    if order is None:
        order = _order(array, axis, descending)
        if array.dtype.kind == "f" and np.isnan(array).any():
            _order_with_nans(order, array if descending else np.negative(array), axis, count)
        order = order[(*(slice(None),) * axis_of(axis, array.ndim), slice(count))]
    return owned(np.take_along_axis(array, order, axis)), order.astype(dtype.numpy, "C")


def _order_of_largest(array: Array, k: int) -> Array | None:
    """Where the ``k`` largest elements of each row are, without sorting the rest; ``None`` if that does not help."""
    length = array.shape[-1]
    if not 0 < 8 * k <= length:
        return None
    largest = np.partition(array, length - k, -1)[..., length - k :]
    # A NaN is the largest of all: without one here, there is none at all.
    if array.dtype.kind == "f" and np.isnan(largest).any():
        return None
    found = np.greater_equal(array, largest[..., :1])
    numbers = np.flatnonzero(found)
    if numbers.size != largest.size:
        # Elements that are equal to the last one are left over.
        return None
    places = np.remainder(numbers, length).reshape(largest.shape)
    return np.take_along_axis(places, _order(np.take_along_axis(array, places, -1), -1, True), -1)


def _top_k_shape(c: Inference, k: Any, axis: Any, descending: bool, dtype: Any) -> list[Output]:
    dims = c.at_least(0, 1)
    if dims is None:
        return [(c.dtype(), None), (dtype, None)]
    place = c.axis(axis, len(dims))
    count = None if k is None else number(k)
    if place is None or k is None:
        return [(c.dtype(), dims), (dtype, dims)]
    length = dims[place]
    if count is not None and count < 0:
        c.refuse(f"Need k >= 0, got {count}")
    if count is not None and length is not None and length < count:
        c.refuse(f"input must have last dimension >= k = {count} but is {length}")
    made = (*dims[:place], count, *dims[place + 1 :])
    return [(c.dtype(), made), (dtype, made)]


_top_k_row = operation("TopKV2", _top_k, shape=_top_k_shape, fault=_top_k_fault)


def top_k(
    input: Any,  # noqa: A002 - the name TensorFlow has
    k: Any = 1,
    sorted: bool = True,  # noqa: A002 - the name TensorFlow has
    index_type: Any = int32,
    name: str | None = None,
) -> TopKV2:
    """The ``k`` largest elements of the last axis and where they were. As ``tf.math.top_k``.

    They come largest first, whether ``sorted`` or not; of equal ones the first comes first.

    Raises:
        InvalidArgumentError: There are fewer than ``k``.
    """
    wanted = as_dtype(index_type)
    check_attribute("TopKV2", "index_type", wanted, name)
    tensor = to_tensor(input)
    count = number_argument(widened(k) if dtype_of(k) is int16 else k, "k")
    return TopKV2(*run(_top_k_row, (tensor,), count, -1, True, wanted, name=name))


def _descending(direction: Any) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            f"Argument `direction` should be one of ASCENDING, DESCENDING. Received: direction={direction}"
        )
    return bool(direction == "DESCENDING")


def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None) -> EagerTensor:
    """Sort along an axis. As ``tf.sort``.

    Raises:
        ValueError: ``direction`` is neither ``"ASCENDING"`` nor ``"DESCENDING"``.
    """
    return _sorted(values, axis, direction, name)[0]


def argsort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> EagerTensor:
    """Where the elements of a sorted axis come from; equal ones always keep their order. As ``tf.argsort``.

    Raises:
        ValueError: ``direction`` is neither ``"ASCENDING"`` nor ``"DESCENDING"``.
    """
    return _sorted(values, axis, direction, name)[1]


def _sorted(values: Any, axis: Any, direction: str, name: str | None) -> tuple[EagerTensor, EagerTensor]:
    descending, place = _descending(direction), attribute_argument(axis, "axis")
    tensor = to_tensor(values)
    rank = rank_of(tensor)
    if thread.state.graph is not None and rank is not None and not -rank <= place < rank:
        # TensorFlow looks at the length of the axis before it sorts.
        raise ValueError(f"slice index {place} of dimension 0 out of bounds.")
    return run(_top_k_row, (tensor,), None, place, descending, int32, name=name)  # type: ignore[no-any-return]


def _vector_fault(array: Array, dtype: DType) -> str | None:
    return None if array.ndim == 1 else "unique expects a 1D vector."


def _unique(array: Array, dtype: DType) -> tuple[Array, Array, Array]:
    wanted = dtype.numpy
    if not array.size:
        nothing = np.empty(0, wanted)
        return array.copy(), nothing, nothing.copy()
    low = int(array.min()) if array.dtype.kind in "iu" else 0
    if array.dtype.kind in "iu" and int(array.max()) - low <= 2 * array.size:
        wide = array.dtype if array.dtype.kind == "u" else np.dtype(np.int64)
        numbers = np.subtract(array, wide.type(low), dtype=wide).astype(np.intp, copy=False)
        first, which, counts = _groups_of_integers(numbers)
    else:
        first, which, counts = _groups(array)
    # Wanted is the order in which they come up first.
    order = np.argsort(first)
    rank = np.empty(len(first), wanted)
    rank[order] = np.arange(len(first), dtype=wanted)
    return array[first[order]], rank[which], counts[order].astype(wanted)


def _groups(array: Array) -> tuple[Array, Array, Array]:
    """The first place of each group of equal elements, the group of each element, and how many a group has."""
    order = np.argsort(array)
    ordered = array[order]
    # A NaN is equal to nothing.
    starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
    counts = np.diff(starts, append=array.size)
    which = np.empty(array.size, np.intp)
    which[order] = np.repeat(np.arange(len(starts)), counts)
    return np.minimum.reduceat(order, starts), which, counts


def _groups_of_integers(numbers: Array) -> tuple[Array, Array, Array]:
    """The same of numbers from 0 on, of which there are not many more than elements."""
    count = np.bincount(numbers)
    first = np.empty(len(count), np.intp)
    # Of assignments to one place the last stays.
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    present = np.flatnonzero(count)
    group = np.empty(len(count), np.intp)
    group[present] = np.arange(len(present))
    return first[present], group[numbers], count[present]


def _unique_shape(c: Inference, dtype: Any) -> list[Output]:
    (length,) = c.ranked(0, 1)
    return [(c.dtype(), (None,)), (dtype, (length,))]


def _unique_with_counts_shape(c: Inference, dtype: Any) -> list[Output]:
    # Whether it is a vector is left to the session, as in TensorFlow.
    return [(c.dtype(), (None,)), (dtype, c.shape()), (dtype, (None,))]


_unique_row = operation(
    "Unique", lambda array, dtype: _unique(array, dtype)[:2], shape=_unique_shape, fault=_vector_fault
)
_unique_with_counts_row = operation(
    "UniqueWithCounts", _unique, shape=_unique_with_counts_shape, fault=_vector_fault
)


def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> Unique:
    """The different elements of a vector, in the order in which they come up. As ``tf.unique``.

    Raises:
        InvalidArgumentError: It is no vector.
    """
    return Unique(*run(_unique_row, (to_tensor(x),), _numbers("Unique", out_idx, name), name=name))


def unique_with_counts(x: Any, out_idx: Any = int32, name: str | None = None) -> UniqueWithCounts:
    """The different elements of a vector and how often each comes up. As ``tf.unique_with_counts``.

    Raises:
        InvalidArgumentError: It is no vector.
    """
    wanted = _numbers("UniqueWithCounts", out_idx, name)
    return UniqueWithCounts(*run(_unique_with_counts_row, (to_tensor(x),), wanted, name=name))


def _numbers(op: str, dtype: Any, name: str | None) -> DType:
    wanted = as_dtype(dtype)
    check_attribute(op, "out_idx" if op.startswith("Unique") else "out_type", wanted, name)
    return wanted


def _bound_fault(array: Array, values: Array, side: str, dtype: DType) -> str | None:
    if array.ndim < 1 or values.ndim < 1:
        return "slice index -1 of dimension 0 out of bounds."
    if array.shape[:-1] != values.shape[:-1]:
        return "Leading dim_size of both tensors must match."
    return None


def _bound(array: Array, values: Array, side: Any, dtype: DType) -> Array:
    found = np.empty(values.shape, dtype.numpy)
    for row in np.ndindex(array.shape[:-1]):
        found[row] = np.searchsorted(array[row], values[row], side)
    if side == "left" and values.dtype.kind == "f":
        # No element is less than a NaN.
        found[np.isnan(values)] = 0
    return found


def _bound_shape(c: Inference, side: str, dtype: Any) -> list[Output]:
    rows, values = c.at_least(0, 1), c.at_least(1, 1)
    if rows is not None and values is not None:
        c.merged(rows[:-1], values[:-1])
    return c.one(values, dtype)


_lower_row = operation("LowerBound", _bound, shape=_bound_shape, fault=_bound_fault)
_upper_row = operation("UpperBound", _bound, shape=_bound_shape, fault=_bound_fault)


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = int32, name: str | None = None
) -> EagerTensor:
    """Where values would have to be put into sorted rows to keep them sorted. As ``tf.searchsorted``.

    Raises:
        ValueError: ``side`` is neither ``"left"`` nor ``"right"``.
        InvalidArgumentError: There are not as many rows of values as of sorted elements.
    """
    if side not in ("left", "right"):
        raise ValueError(f"Argument `side` must be either 'right' or 'left'. Received: `side` = '{side}'.")
    row = _lower_row if side == "left" else _upper_row
    rows = to_tensor(sorted_sequence)
    inputs = rows, to_tensor(values, like=rows._dtype)
    return run(row, inputs, side, _numbers(row.name, out_type, name), name=name)  # type: ignore[no-any-return]


__all__ = [
    "TopKV2",
    "Unique",
    "UniqueWithCounts",
    "argsort",
    "searchsorted",
    "sort",
    "top_k",
    "unique",
    "unique_with_counts",
]
