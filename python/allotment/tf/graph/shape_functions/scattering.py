"""Shapes of operations that put elements or slices at places."""

from typing import Any

from allotment.tf.ops.inference.shape_functions import (
    Dims,
    Inference,
    Output,
    lengths,
    multiplied,
    shape_function,
)
from allotment.tf.tensors.dtype import int16


def _check(c: Inference, dims: Dims, updates: Dims, indices: Dims) -> None:
    """Refuse updates that do not fit places in a tensor of a shape."""
    if (
        dims is not None
        and 0 in dims
        and any(each is not None and multiplied(*each) for each in (updates, indices))
    ):
        c.refuse(f"Indices and updates specified for empty output of shape {list(dims)}")
    if indices is None or indices[-1] is None or not updates:
        # TensorFlow leaves scalars to the session.
        return
    outer, depth = len(indices) - 1, indices[-1]
    c.merged(indices[:-1], updates[:outer])
    if dims is None:
        return
    c.merged(dims[depth:], updates[outer:])


@shape_function("ScatterNd")
def _scatter_nd(c: Inference, shape: Any, policy: str) -> list[Output]:
    dims, indices, updates = lengths(shape), c.at_least(1, 1), c.at_least(0, 1)
    if dims and None not in dims and c.dtype(1) is int16:
        # The shape has the type of the places, of which TensorFlow reads shapes only in a session.
        c.refuse("Input tensor must be int32 or int64, but was int16")
    _check(c, dims, updates, indices)
    return c.one(dims)


@shape_function(
    "TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate"
)
def _tensor_scatter(c: Inference, policy: str) -> list[Output]:
    _check(c, c.at_least(0, 1), c.shape(1), c.at_least(2, 1))
    return c.one(c.inputs[0]._shape)


__all__: list[str] = []
