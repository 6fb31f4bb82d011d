"""Operations that sort elements, or find the largest."""

from typing import Any, NamedTuple

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.arguments.integers import (
    attribute_argument,
    axis_of,
    has_axes,
    scalar_argument,
)
from allotment.tf.ops.arguments.scalars import attribute_flag
from allotment.tf.ops.array.array import get_static_value, widened
from allotment.tf.ops.arrays import Array, as_array, owned
from allotment.tf.ops.convert import dtype_of, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.nan_order import LONGEST, largest_places
from allotment.tf.ops.inference.shape_functions import Inference, Output, number
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.table import dims, operation
from allotment.tf.ops.types.element_types import check_attribute
from allotment.tf.tensors.dtype import DType, as_dtype, int16, int32
from allotment.tf.tensors.tensor import EagerTensor


class TopKV2(NamedTuple):
    """The largest elements and where they were."""

    values: EagerTensor
    indices: EagerTensor


def _order(array: Array, axis: int, descending: bool) -> Array:
    """Return the indices that sort an array along an axis; equal elements keep their order."""
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
    np.bitwise_or(keys, np.arange(keys.shape[-1], like=keys), out=keys)
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
    with_nans = as_array(np.isnan(rows).any(-1))
    for row in np.ndindex(with_nans.shape):
        if with_nans[row]:
            found = largest_places(rows[row].tolist(), count)
            places[row][:count] = np.asarray(found, places.dtype, like=places)


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
    """Return the indices of each row's ``k`` largest elements without a sort of all; ``None`` if that is no faster."""
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
    attribute_flag(sorted, "sorted")
    count = scalar_argument(widened(k) if dtype_of(k) is int16 else k, "k")
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


@in_name_scope("argsort", None)
def argsort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> EagerTensor:
    """Return the indices that sort an axis; equal elements always keep their order. As ``tf.argsort``.

    Raises:
        ValueError: ``direction`` is neither ``"ASCENDING"`` nor ``"DESCENDING"``.
    """
    return _sorted(values, axis, direction, name)[1]


def _sorted(values: Any, axis: Any, direction: str, name: str | None) -> tuple[EagerTensor, EagerTensor]:
    descending = _descending(direction)
    if thread.state.graph is not None and dtype_of(axis) is not None:
        axis = get_static_value(axis)
    if axis is None or has_axes(axis) or isinstance(axis, set):
        raise ValueError(f"Argument `axis` must be a constant scalar. Received: axis={axis}.")
    place = attribute_argument(axis, "axis")
    tensor = to_tensor(values)
    rank = rank_of(tensor)
    if thread.state.graph is not None and rank is not None and not -rank <= place < rank:
        # TensorFlow looks at the length of the axis before it sorts.
        raise ValueError(f"slice index {place} of dimension 0 out of bounds.")
    return run(_top_k_row, (tensor,), None, place, descending, int32, name=name)  # type: ignore[no-any-return]


__all__ = ["TopKV2", "argsort", "sort", "top_k"]
