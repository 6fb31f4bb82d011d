"""Gradients of operations that take a part of a tensor: the part's, with zeros around it."""

from typing import Any

import numpy as np

from allotment.tf.ops.array.creation import shape_input
from allotment.tf.ops.array.joining import stack
from allotment.tf.ops.array.padding import pad
from allotment.tf.ops.array.shapes import shape
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.autodiff.broadcasting import shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.deferred import is_known, listed
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.slicing import Index, index_fault, part_shape, strided_slice_row, view
from allotment.tf.ops.inference.shape_functions import Inference, Output, lengths
from allotment.tf.ops.table import dims, operation


def _put_fault(part: Array, shape: tuple[int, ...], index: Index) -> str | None:
    whole = np.broadcast_to(np.zeros((), part.dtype, like=part), shape)
    fault = index_fault(whole, index)
    if fault is None and view(whole, index).shape != part.shape:
        fault = f"shape of dy was {dims(part)} instead of {dims(view(whole, index))}"
    return fault


def _put(part: Array, shape: tuple[int, ...], index: Index) -> Array:
    whole = np.zeros(shape, part.dtype, like=part)
    view(whole, index)[...] = part
    return whole


def _put_shape(c: Inference, shape: Any, index: tuple[Any, ...]) -> list[Output]:
    dims = lengths(shape)
    if dims is not None:
        c.merged(part_shape(c, dims, index), c.shape())
    return c.one(dims)


_row = operation("StridedSliceGrad", _put, shape=_put_shape, fault=_put_fault)


def put(part: Any, lengths: Any, index: Index) -> Any:
    """Zeros of a shape with a tensor at the place of an index."""
    return run(_row, (part,), shape_input(lengths), index)


@gradient("StridedSlice", inputs=False)
def _strided_slice(call: Call, upstream: Any) -> Any:
    return put(upstream, shape_of(call.inputs[0]), call.args[0])


@gradient("Slice", inputs=False)
def _slice(call: Call, upstream: Any) -> Any:
    begins, sizes = call.args
    if is_known(begins) and is_known(sizes):
        index = tuple(
            slice(begin, None if size == -1 else begin + size)
            for begin, size in zip(begins, sizes, strict=True)
        )
        return put(upstream, shape_of(call.inputs[0]), index)
    # As many zeros in front of the part as it begins at, and the rest behind it.
    first = listed(begins)
    behind = shape(call.inputs[0]) - shape(upstream) - first
    return pad(upstream, stack([first, behind], 1))


@gradient("StridedSliceGrad", inputs=False)
def _strided_slice_grad(call: Call, upstream: Any) -> Any:
    return run(strided_slice_row, (upstream,), call.args[1])


__all__ = ["put"]
