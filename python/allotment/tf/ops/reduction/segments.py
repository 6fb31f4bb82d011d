"""Reductions over rows that share a number."""

from collections.abc import Callable
from typing import Any

import numpy as np

from allotment.tf.ops.arguments.axes import check_whole
from allotment.tf.ops.arguments.integers import scalar_argument
from allotment.tf.ops.arrays import Array, full, in_single, quotient, size_fault
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output, number
from allotment.tf.ops.reduction.rows import reduce_at, reduce_sorted
from allotment.tf.ops.table import Operation, dims, operation
from allotment.tf.tensors.tensor import EagerTensor, Tensor


def _unsorted(ufunc: np.ufunc, start: Callable[[Any], Any]) -> Callable[..., Array]:
    """A function that reduces the rows of each segment; those of a negative number are left out."""

    def function(data: Array, ids: Array, count: int) -> Array:
        numbers = ids.reshape(-1)
        rows = data.reshape(numbers.size, *data.shape[ids.ndim :])
        result = full((count, *rows.shape[1:]), start(data.dtype), data.dtype, like=data)
        if numbers.size and numbers.min() < 0:
            kept = np.greater_equal(numbers, 0)
            numbers, rows = numbers[kept], rows[kept]
        reduce_at(ufunc, result, numbers, rows)
        return result

    return function


def _sorted(ufunc: np.ufunc, start: Callable[[Any], Any]) -> Callable[..., Array]:
    """The same for numbers that ascend, of which none is negative."""

    def function(data: Array, ids: Array) -> Array:
        count = int(ids[-1]) + 1 if ids.size else 0
        result = full((count, *data.shape[1:]), start(data.dtype), data.dtype, like=data)
        reduce_sorted(ufunc, result, ids, data)
        return result

    return function


def _zero(dtype: Any) -> Any:
    return 0


def _one(dtype: Any) -> Any:
    return 1


def _lowest(dtype: Any) -> Any:
    return np.finfo(dtype).min if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    return np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max


def _extreme_into(ufunc: np.ufunc, start: Callable[[Any], Any]) -> Callable[..., Array]:
    """The same for extremes, where a NaN compares with nothing: the next element of its segment replaces it."""
    reduce = _unsorted(ufunc, start)

    def function(data: Array, ids: Array, count: int) -> Array:
        if data.dtype.kind != "f" or count == 0 or not np.isnan(data).any():
            return reduce(data, ids, count)
        numbers, places = ids.reshape(-1), np.arange(ids.size, like=ids)
        rows, kept = data.reshape(numbers.size, -1), numbers >= 0
        nans, ends = full((count, rows.shape[1]), -1, np.int64, like=ids), full(count, -1, np.int64, like=ids)
        np.maximum.at(nans, numbers[kept], np.where(np.isnan(rows), places[:, None], -1)[kept])
        np.maximum.at(ends, numbers[kept], places[kept])
        behind = np.greater(places[:, None], nans[numbers])
        result = reduce(np.where(behind, rows, start(data.dtype)).reshape(data.shape), ids, count)
        np.copyto(result.reshape(count, -1), np.nan, where=(nans >= 0) & (nans == ends[:, None]))
        return result

    return function


def _sorted_extreme(ufunc: np.ufunc, worst: float) -> Callable[[Array, Array], Array]:
    """Extremes for numbers that ascend. A number that no row has gives zeros, unlike in the unsorted kind."""
    # Infinities are extremes, too: every segment has an element, or is filled.
    of_numbers, of_nans = _sorted(ufunc, _zero), _extreme_into(ufunc, lambda _: worst)

    def function(data: Array, ids: Array) -> Array:
        if data.dtype.kind != "f" or not np.isnan(data).any():
            return of_numbers(data, ids)
        count = int(ids[-1]) + 1
        result = of_nans(data, ids, count)
        result[np.bincount(ids, minlength=count) == 0] = 0
        return result

    return function


_SORTED_SUM = in_single(_sorted(np.add, _zero))


def _sizes(data: Array, ids: Array, count: int) -> Array:
    """Return the number of rows of each segment, at least 1, in a shape that divides arrays of rows."""
    sizes = np.bincount(ids[ids >= 0].reshape(-1), minlength=count)
    np.maximum(sizes, 1, out=sizes)
    return sizes.reshape(count, *[1] * (data.ndim - ids.ndim))


@in_single
def _mean(data: Array, ids: Array) -> Array:
    total = _SORTED_SUM(data, ids)
    sizes = _sizes(data, ids, len(total))
    if total.dtype.kind in "iu":
        return quotient(total, sizes)
    np.true_divide(total, sizes, out=total, casting="unsafe")
    return total


def _unsorted_fault(data: Array, ids: Array, count: int) -> str | None:
    if data.shape[: ids.ndim] != ids.shape:
        return f"data.shape = {dims(data)} does not start with segment_ids.shape = {dims(ids)}"
    if count < 0:
        return "Input num_segments must be non-negative"
    # Rows without elements go nowhere, whatever their numbers are.
    if data.size and ids.max() >= count:
        place = np.unravel_index(int(np.argmax(ids >= count)), ids.shape)
        where = ",".join(map(str, place))
        return f"segment_ids[{where}] = {int(ids[place])} is out of range [0, {count})"
    return size_fault((count, *data.shape[ids.ndim :]), data.dtype)


def _sorted_fault(data: Array, ids: Array) -> str | None:
    if ids.ndim != 1:
        return f"segment_ids should be a vector, not {dims(ids)}"
    if data.ndim == 0 or len(data) != len(ids):
        return "segment_ids should be the same size as dimension 0 of input."
    if ids.size and ids[0] < 0:
        return "segment ids must be >= 0"
    if np.any(ids[1:] < ids[:-1]):
        return "segment ids are not increasing"
    return size_fault((int(ids[-1]) + 1, *data.shape[1:]), data.dtype) if ids.size else None


def _sorted_shape(c: Inference) -> list[Output]:
    data, _ = c.at_least(0, 1), c.ranked(1, 1)
    return c.one(None if data is None else (None, *data[1:]))


def _unsorted_shape(c: Inference, count: Any) -> list[Output]:
    data, ids, length = c.shape(0), c.shape(1), number(count)
    if ids is None:
        return c.one(None)
    if data is not None and len(data) < len(ids):
        c.refuse(f"Shape must be at least rank {len(ids)} but is rank {len(data)}")
    if data is not None:
        c.merged(data[: len(ids)], ids)
    if length is not None and length < 0:
        c.refuse(f"Dimension size, given by scalar input, must be non-negative but is {length}")
    if data is None:
        return c.one(None)
    return c.one((length, *data[len(ids) :]))


def _row(op: str, function: Callable[..., Array], fault: Callable[..., str | None]) -> Operation:
    shape = _sorted_shape if fault is _sorted_fault else _unsorted_shape
    return operation(op, function, shape=shape, fault=fault)


_segment_sum = _row("SegmentSum", _SORTED_SUM, _sorted_fault)
_segment_mean = _row("SegmentMean", _mean, _sorted_fault)
_segment_prod = _row("SegmentProd", _sorted(np.multiply, _one), _sorted_fault)
_segment_max = _row("SegmentMax", _sorted_extreme(np.maximum, -np.inf), _sorted_fault)
_segment_min = _row("SegmentMin", _sorted_extreme(np.minimum, np.inf), _sorted_fault)
_unsorted_sum = _row("UnsortedSegmentSum", in_single(_unsorted(np.add, _zero)), _unsorted_fault)
_unsorted_prod = _row("UnsortedSegmentProd", _unsorted(np.multiply, _one), _unsorted_fault)
_unsorted_max = _row("UnsortedSegmentMax", _extreme_into(np.maximum, _lowest), _unsorted_fault)
_unsorted_min = _row("UnsortedSegmentMin", _extreme_into(np.minimum, _highest), _unsorted_fault)


def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> EagerTensor:
    """Add rows with the same number; the numbers ascend. As ``tf.math.segment_sum``.

    A number that no row has gives zeros.

    Raises:
        InvalidArgumentError: The numbers do not ascend, or are not as many as rows.
    """
    return _run(_segment_sum, data, segment_ids, name)


def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> EagerTensor:
    """The mean of rows with the same number. As ``tf.math.segment_mean``; see ``segment_sum``."""
    return _run(_segment_mean, data, segment_ids, name)


def segment_prod(data: Any, segment_ids: Any, name: str | None = None) -> EagerTensor:
    """Multiply rows with the same number; none gives ones. As ``tf.math.segment_prod``; see ``segment_sum``."""
    return _run(_segment_prod, data, segment_ids, name)


def segment_max(data: Any, segment_ids: Any, name: str | None = None) -> EagerTensor:
    """The largest of rows with the same number. As ``tf.math.segment_max``; see ``segment_sum``."""
    return _run(_segment_max, data, segment_ids, name)


def segment_min(data: Any, segment_ids: Any, name: str | None = None) -> EagerTensor:
    """The smallest of rows with the same number. As ``tf.math.segment_min``; see ``segment_sum``."""
    return _run(_segment_min, data, segment_ids, name)


def unsorted_segment_sum(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> EagerTensor:
    """Add rows with the same number, in any order. As ``tf.math.unsorted_segment_sum``.

    Rows with a negative number are left out; a number that no row has gives zeros.

    Raises:
        InvalidArgumentError: A number is not below ``num_segments``, or the shapes do not go together.
    """
    return _run_unsorted(_unsorted_sum, data, segment_ids, num_segments, name)


def unsorted_segment_prod(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> EagerTensor:
    """Multiply rows with the same number; none gives ones. As ``tf.math.unsorted_segment_prod``."""
    return _run_unsorted(_unsorted_prod, data, segment_ids, num_segments, name)


def unsorted_segment_max(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> EagerTensor:
    """The largest of rows with the same number, of none the lowest finite value.

    As ``tf.math.unsorted_segment_max``.
    """
    return _run_unsorted(_unsorted_max, data, segment_ids, num_segments, name)


def unsorted_segment_min(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> EagerTensor:
    """The smallest of rows with the same number, of none the highest finite value.

    As ``tf.math.unsorted_segment_min``.
    """
    return _run_unsorted(_unsorted_min, data, segment_ids, num_segments, name)


def _run(row: Operation, data: Any, segment_ids: Any, name: str | None, *arguments: Any) -> EagerTensor:
    data, ids = to_tensor(data), to_tensor(segment_ids)
    return run(row, (data, ids), *arguments, name=name)  # type: ignore[no-any-return]


def _run_unsorted(row: Operation, data: Any, ids: Any, num_segments: Any, name: str | None) -> EagerTensor:
    are_tensors = isinstance(data, Tensor) and isinstance(ids, Tensor)
    check_whole(row.name, "Tnumsegments", num_segments, name, is_int32=are_tensors)
    return _run(row, data, ids, name, scalar_argument(num_segments, "num_segments"))


__all__ = [
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "unsorted_segment_max",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sum",
]
