"""Shapes of operations that put elements or slices at places."""

from typing import Any

from allotment.graph.shape_functions.inference import Dims, Inference, Output, lengths, shape_function


def _check(c: Inference, dims: Dims, updates: Dims, indices: Dims) -> None:
    """Refuse updates that do not fit places in a tensor of a shape."""
    if indices is None or indices[-1] is None or updates is None:
        return
    outer, depth = len(indices) - 1, indices[-1]
    c.merged(indices[:-1], updates[:outer])
    if dims is None:
        return
    if depth > len(dims):
        c.refuse(f"indices.shape[-1] must be at most {len(dims)}, but is {depth}")
    c.merged(dims[depth:], updates[outer:])


@shape_function("ScatterNd")
def _scatter_nd(c: Inference, shape: Any, policy: str) -> list[Output]:
    dims = lengths(shape)
    _check(c, dims, c.shape(0), c.at_least(1, 1))
    return c.one(dims)


@shape_function(
    "TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate"
)
def _tensor_scatter(c: Inference, policy: str) -> list[Output]:
    _check(c, c.at_least(0, 1), c.shape(1), c.at_least(2, 1))
    return c.one(c.inputs[0]._shape)


__all__: list[str] = []
