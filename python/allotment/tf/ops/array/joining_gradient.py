"""Gradients of operations that join tensors along an axis."""

from typing import Any

from allotment.tf.ops.array.joining import stack
from allotment.tf.ops.array.shapes import shape, size
from allotment.tf.ops.array.splitting import split, unstack
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.deferred import is_known, operand
from allotment.tf.ops.indexing.gathering import gather


@gradient("ConcatV2", inputs=False)
def _concat(call: Call, upstream: Any) -> list[Any]:
    axis = operand(call.kwargs["axis"])
    if is_known(call.kwargs["axis"]):
        known = [each.shape[axis] for each in call.inputs]
        if None not in known:
            return split(upstream, known, axis)
    # In a graph, lengths that it does not know are tensors.
    shapes = stack([shape(each) for each in call.inputs], 0)
    sizes = gather(shapes, axis if type(axis) is not int or axis >= 0 else size(shapes[0]) + axis, axis=1)
    return split(upstream, sizes, axis, len(call.inputs))


@gradient("Pack", inputs=False)
def _pack(call: Call, upstream: Any) -> list[Any]:
    return unstack(upstream, len(call.inputs), call.kwargs["axis"])


__all__: list[str] = []
