"""Operations on ``tf.IndexedSlices``: they become tensors, and are added up as gradients."""

from collections.abc import Callable, Sequence
from typing import Any

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.indexing.gathering import gather
from allotment.tf.ops.operators import attach
from allotment.tf.ops.reduction.segments import unsorted_segment_sum
from allotment.tf.ops.reduction.sums import add_n
from allotment.tf.tensors.dtype import int32, int64
from allotment.tf.tensors.indexed_slices import IndexedSlices


def _as_tensor(slices: IndexedSlices) -> Any:
    if slices.dense_shape is None:
        raise ValueError(
            "Tensor conversion requested for IndexedSlices for argument `value` without dense_shape: "
            f"{slices!s}"
        )
    return unsorted_segment_sum(slices.values, slices.indices, slices.dense_shape[0])


attach(IndexedSlices, {"_as_tensor": _as_tensor})


def dense(value: Any) -> Any:
    """Return slices as a tensor, in which rows of the same number are added up; return anything else as it is.

    Raises:
        ValueError: The slices have no ``dense_shape``.
    """
    return value._as_tensor() if isinstance(value, IndexedSlices) else value


def map_values(function: Callable[[Any], Any], value: Any) -> Any:
    """Call a function with the rows of slices, and return slices of the result; of a tensor, the result itself."""
    if isinstance(value, IndexedSlices):
        return IndexedSlices(function(value.values), value.indices, value.dense_shape)
    return function(value)


def values_of(value: Any) -> Any:
    """Return the rows of slices; return anything else as it is."""
    return value.values if isinstance(value, IndexedSlices) else value


def aggregate(gradients: Sequence[Any]) -> Any:
    """Add up gradients of one tensor, at least two: slices are joined, and beside tensors they become tensors."""
    slices = [each for each in gradients if isinstance(each, IndexedSlices)]
    if len(slices) < len(gradients):
        return add_n(gradients)
    flat = [_flat(each) for each in slices]
    indices = [each.indices for each in flat]
    if any(each.dtype is not indices[0].dtype for each in indices):
        indices = [cast(each, int64) if each.dtype is int32 else each for each in indices]
    return IndexedSlices(concat([each.values for each in flat], 0), concat(indices, 0), flat[0].dense_shape)


def _flat(slices: IndexedSlices) -> IndexedSlices:
    """Return slices with a tensor of values: the values may be slices themselves."""
    if not isinstance(slices.values, IndexedSlices):
        return slices
    inner = _flat(slices.values)
    return IndexedSlices(inner.values, gather(slices.indices, inner.indices), slices.dense_shape)


__all__ = ["IndexedSlices", "aggregate", "dense", "map_values", "values_of"]
