"""Gradients of operations that pick elements by number.

Where rows along the first axis were picked they are ``IndexedSlices``, as TensorFlow's; else zeros, with what was
picked added up where it came from.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from allotment.tf.ops.arguments.integers import axis_of
from allotment.tf.ops.array.creation import shape_input
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import reshape, squeeze
from allotment.tf.ops.array.shapes import size_of
from allotment.tf.ops.arrays import Array, in_single, is_host, open_grid, owned
from allotment.tf.ops.autodiff.broadcasting import length_of, shape_of, shape_tensor
from allotment.tf.ops.autodiff.differentiation import Call, gradient, not_differentiable
from allotment.tf.ops.deferred import operand
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.gathering import gather, gather_nd
from allotment.tf.ops.indexing.indexed_slices import IndexedSlices
from allotment.tf.ops.inference.common import as_requested
from allotment.tf.ops.math.sequences import range as range_of
from allotment.tf.ops.reduction.rows import at, reduce_at
from allotment.tf.ops.table import Operation, operation


def _scattering(name: str, function: Callable[..., Array]) -> Operation:
    return operation(name, in_single(function), shape=as_requested, same_dtype=False)


_add_at = at(np.add)


def _scattered(picked: Array, indices: Array, shape: tuple[int, ...], axis: int, batch_dims: int) -> Array:
    batch, axis = axis_of(batch_dims, indices.ndim), axis_of(axis, len(shape))
    whole = np.zeros(shape, picked.dtype, like=picked)
    if batch == axis == 0:
        reduce_at(np.add, whole, indices, picked)
        return whole
    # The numbers' own axes stand in the place of the axis: both go behind the batch axes.
    more = indices.ndim - batch
    rows = np.moveaxis(picked, range(axis, axis + more), range(batch, batch + more))
    entries = open_grid(shape[:batch], indices)
    first = tuple(entry.reshape(entry.shape + (1,) * more) for entry in entries)
    places = (*first, indices)
    if is_host(whole):
        np.add.at(np.moveaxis(whole, axis, batch), places, rows)
        return whole
    # CuPy is given no tuple of places through NumPy: they are numbered in an array with the axis behind the batch.
    order = [*range(batch), axis, *(each for each in range(batch, len(shape)) if each != axis)]
    turned = np.zeros([shape[each] for each in order], picked.dtype, like=picked)
    _add_at(turned, np.broadcast_arrays(*places), rows)
    return owned(np.moveaxis(turned, batch, axis))


def _scattered_nd(picked: Array, indices: Array, shape: tuple[int, ...], batch_dims: int) -> Array:
    whole = np.zeros(shape, picked.dtype, like=picked)
    entries = open_grid(shape[:batch_dims], indices)
    more = (1,) * (indices.ndim - 1 - batch_dims)
    firsts = (np.broadcast_to(entry.reshape(entry.shape + more), indices.shape[:-1]) for entry in entries)
    places = (*firsts, *np.moveaxis(indices, -1, 0))
    if places:
        _add_at(whole, places, picked)
    else:
        whole += picked.reshape(-1, *shape).sum(0)
    return whole


_gather_row = _scattering("GatherV2Grad", _scattered)
_gather_nd_row = _scattering("GatherNdGrad", _scattered_nd)


@gradient("GatherV2", inputs=(1,))
def _gather(call: Call, upstream: Any) -> Any:
    params, indices = call.inputs
    axis, _ = call.args
    if type(axis) is int and axis == 0:
        rows = _rows_shape(shape_of(params), indices)
        return IndexedSlices(reshape(upstream, rows), reshape(indices, [-1]), shape_tensor(params))
    return run(_gather_row, (upstream, indices), shape_input(shape_of(params)), *call.args)


def _rows_shape(lengths: Any, indices: Any) -> Any:
    """The shape of picked rows, one behind the other: numbers, or in a graph that does not know them a tensor."""
    count = size_of(indices)
    if type(lengths) is tuple and type(count) is int:
        return (count, *lengths[1:])
    return concat([reshape(count, [1]), lengths[1:]], 0)


@gradient("GatherV2Grad", inputs=(1,))
def _gather_grad(call: Call, upstream: Any) -> Any:
    _, axis, batch_dims = call.args
    return gather(upstream, call.inputs[1], axis=operand(axis), batch_dims=batch_dims)


@gradient("GatherNd", inputs=(1,))
def _gather_nd(call: Call, upstream: Any) -> Any:
    params, indices = call.inputs
    (batch_dims,) = call.args
    if indices.shape.rank == 2 and indices.shape[-1] == 1 - batch_dims:
        # Rows: by number, or with a batch axis each its own.
        rows = (
            squeeze(indices, [-1])
            if batch_dims == 0
            else range_of(length_of(params, 0), dtype=indices._dtype)
        )
        return IndexedSlices(upstream, rows, shape_tensor(params, indices._dtype))
    return run(_gather_nd_row, (upstream, indices), shape_input(shape_of(params)), *call.args)


@gradient("GatherNdGrad", inputs=(1,))
def _gather_nd_grad(call: Call, upstream: Any) -> Any:
    return gather_nd(upstream, call.inputs[1], call.args[1])


not_differentiable("Where")

__all__: list[str] = []
