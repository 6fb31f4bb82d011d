"""Shapes of operations that pick elements or slices."""

from typing import Any

from allotment.tf.ops.deferred import Deferred
from allotment.tf.ops.inference.shape_functions import (
    Dims,
    Inference,
    Output,
    lengths,
    shape_function,
    unknown,
)
from allotment.tf.tensors.dtype import int64


@shape_function("GatherV2")
def _gather(c: Inference, axis: Any, batch_dims: Any) -> list[Output]:
    params, indices = c.at_least(0, 1), c.shape(1)
    if params is None or type(batch_dims) is Deferred:
        return c.one(None)
    if indices is None:
        if batch_dims >= 0 and type(axis) is not Deferred:
            _check_rank(c, params, axis, batch_dims)
        return c.one(None)
    if not -len(indices) <= batch_dims <= len(indices):
        c.refuse(f"Expected batch_dims in the range [{-len(indices)}, {len(indices)}], but got {batch_dims}")
    batch = batch_dims + len(indices) if batch_dims < 0 else batch_dims
    if type(axis) is Deferred:
        return c.one(unknown(len(params) + len(indices) - 1 - batch))
    _check_rank(c, params, axis, batch)
    place = axis + len(params) if axis < 0 else axis
    if place < batch:
        c.refuse(f"batch_dims ({batch}) must be less than or equal to axis ({place}).")
    # Lengths of the batch that differ are left to the session, as in TensorFlow.
    before = [a if b is None else b for a, b in zip(params[:batch], indices[:batch], strict=True)]
    return c.one((*before, *params[batch:place], *indices[batch:], *params[place + 1 :]))


def _check_rank(c: Inference, params: tuple[int | None, ...], axis: int, batch: int) -> None:
    least = max(axis + 1 if axis >= 0 else -axis, batch + 1)
    if len(params) < least:
        c.refuse(f"Shape must be at least rank {least} but is rank {len(params)}")


@shape_function("GatherNd")
def _gather_nd(c: Inference, batch_dims: Any) -> list[Output]:
    params, indices = c.at_least(0, 1), c.at_least(1, 1)
    if params is None or indices is None or indices[-1] is None:
        return c.one(None)
    depth = indices[-1]
    if depth > len(params) - batch_dims:
        c.refuse(
            f"indices.shape[-1] must be <= params.rank, but saw indices.shape[-1]={depth} and {len(params)}"
        )
    # Axes of the batch are those of both.
    batch = [
        other if length is None else length
        for length, other in zip(indices[:batch_dims], params[:batch_dims], strict=True)
    ]
    return c.one((*batch, *indices[batch_dims:-1], *params[batch_dims + depth :]))


@shape_function("GatherV2Grad", "GatherNdGrad", "BooleanMaskGrad")
def _scattered(c: Inference, shape: Any, *args: Any) -> list[Output]:
    return c.one(lengths(shape))


@shape_function("BooleanMask")
def _mask(c: Inference, axis: Any) -> list[Output]:
    dims, mask = c.shape(0), c.shape(1)
    if mask is None:
        return c.one(None)
    if dims is None or type(axis) is Deferred:
        return c.one(None)
    place = axis + len(dims) if axis < 0 else axis
    c.merged(dims[place : place + len(mask)], mask)
    return c.one((*dims[:place], None, *dims[place + len(mask) :]))


@shape_function("Where")
def _where(c: Inference) -> list[Output]:
    dims = c.shape()
    return c.one((None, None if dims is None else len(dims)), int64)


@shape_function("InvertPermutation")
def _inverted(c: Inference) -> list[Output]:
    return c.one(c.ranked(0, 1))


@shape_function("OneHot")
def _one_hot(c: Inference, depth: Any, axis: int) -> list[Output]:
    c.ranked(0, 0)
    c.ranked(1, 0)
    dims: Dims = c.shape(2)
    length = None if type(depth) is Deferred else depth
    if length is not None and length < 0:
        c.refuse(f"Dimension size, given by scalar input 1, must be non-negative but is {length}")
    if dims is None:
        return c.one(None)
    if axis < -1:
        c.refuse(f"axis must be >= -1, but is {axis}")
    # An axis that is too large is refused when the node runs.
    place = len(dims) if axis == -1 else min(axis, len(dims))
    return c.one((*dims[:place], length, *dims[place:]))


__all__: list[str] = []
