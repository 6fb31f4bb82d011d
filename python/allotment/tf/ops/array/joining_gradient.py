"""Gradients of operations that join tensors along an axis."""

from typing import Any

from allotment.tf.ops.array.array import cast, is_tensor
from allotment.tf.ops.array.joining import stack
from allotment.tf.ops.array.layout import squeeze
from allotment.tf.ops.array.shapes import shape, size
from allotment.tf.ops.array.splitting import split, unstack
from allotment.tf.ops.autodiff.broadcasting import length_of, rank_of, shape_tensor
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.deferred import is_known, operand
from allotment.tf.ops.indexing.gathering import gather
from allotment.tf.ops.indexing.indexed_slices import IndexedSlices, dense
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.math.comparison import greater_equal, less
from allotment.tf.ops.math.logical import logical_and
from allotment.tf.tensors.dtype import int32


@gradient("ConcatV2", inputs=False, slices=True)
def _concat(call: Call, upstream: Any) -> list[Any]:
    if isinstance(upstream, IndexedSlices):
        axis = call.kwargs["axis"]
        if is_known(axis) and (axis >= 0 or call.inputs[0].shape.rank is not None):
            return _of_slices(call, upstream, axis if axis >= 0 else axis + rank_of(call.inputs[0]))
    return _parts(call, dense(upstream))


def _of_slices(call: Call, upstream: IndexedSlices, axis: int) -> list[Any]:
    """Slices for each tensor: all rows with a part of each, or along the first axis the rows of each tensor."""
    shapes = [shape_tensor(each) for each in call.inputs]
    if axis > 0:
        columns = _parts(call, upstream.values)
        return [IndexedSlices(each, upstream.indices, own) for each, own in zip(columns, shapes, strict=True)]
    made: list[Any] = []
    start: Any = 0
    for each, own in zip(call.inputs, shapes, strict=True):
        end = start + cast(length_of(each, 0), upstream.indices.dtype)
        inside = logical_and(greater_equal(upstream.indices, start), less(upstream.indices, end))
        places = squeeze(where(inside), [1])
        rows = gather(upstream.values, places)
        made.append(IndexedSlices(rows, gather(upstream.indices, places) - start, own))
        start = end
    return made


def _parts(call: Call, upstream: Any) -> list[Any]:
    axis = operand(call.kwargs["axis"])
    if is_known(call.kwargs["axis"]):
        known = [each.shape[axis] for each in call.inputs]
        if None not in known:
            return split(upstream, known, axis)
    # In a graph, lengths that it does not know are tensors.
    shapes = stack([shape(each) for each in call.inputs], 0)
    sizes = gather(shapes, axis % cast(size(shapes[0]), axis.dtype if is_tensor(axis) else int32), axis=1)
    return split(upstream, sizes, axis, len(call.inputs))


@gradient("Pack", inputs=False)
def _pack(call: Call, upstream: Any) -> list[Any]:
    return unstack(upstream, len(call.inputs), call.kwargs["axis"])


__all__: list[str] = []
