"""Shape functions that many operations share."""

from typing import Any

from allotment.tf.ops.deferred import is_known
from allotment.tf.ops.inference.shape_functions import Dims, Inference, Output, lengths, numbers, unknown


def unchanged(c: Inference, *args: Any, **kwargs: Any) -> list[Output]:
    """One output of the shape of the first input."""
    first = c.inputs[0]
    return [(c.row.result or first._dtype, first._shape)]


def real_valued(c: Inference) -> list[Output]:
    """One output of the shape of the input, with real numbers for complex ones."""
    return c.one(c.inputs[0]._shape, c.dtype().real_dtype)


def cast_to(c: Inference, dtype: Any) -> list[Output]:
    """One output of the shape of the input and the type that the argument says."""
    return c.one(c.inputs[0]._shape, dtype)


def each_unchanged(c: Inference, count: int | None = None) -> list[Output]:
    """An output of the shape and type of each of the first ``count`` inputs, or of all."""
    return [(each._dtype, each._shape) for each in c.inputs[:count]]


def broadcasting(c: Inference) -> list[Output]:
    """One output of the shape of two inputs that are broadcast to each other."""
    first = c.inputs[0]
    dims = c.broadcast(first._shape._dims, c.inputs[1]._shape._dims)
    return [(c.row.result or first._dtype, first._shape if dims is first._shape._dims else dims)]


def equal_shapes(c: Inference, *args: Any) -> list[Output]:
    """One output of the shape that all inputs have."""
    return c.one(c.all_merged(c.shapes()))


def as_requested(c: Inference, shape: Any, *args: Any) -> list[Output]:
    """One output of the shape that the first argument says."""
    return c.one(lengths(shape))


def reduced(c: Inference, axes: Any, keepdims: bool, *args: Any) -> list[Output]:
    """One output of the shape of the input without some axes, or with these of length 1.

    Raises:
        ValueError: The input has no such axis.
    """
    return c.one(_without(c, axes, keepdims))


def _without(c: Inference, axes: Any, keepdims: bool) -> Dims:
    """The shape of the input without some axes, or with these of length 1."""
    dims = c.shape()
    if is_known(axes) and axes and type(axes[0]) is tuple:
        c.refuse("Shape must be at most rank 1 but is rank 2")
    if axes is None:
        return () if not keepdims else None if dims is None else (1,) * len(dims)
    if dims is None or not is_known(axes):
        count = numbers(axes)
        if dims is None or not (keepdims or count is not None):
            return None
        return unknown(len(dims) if keepdims else max(len(dims) - len(count or ()), 0))
    rank, gone = len(dims), set()
    for axis in axes:
        if not -rank <= axis < rank:
            c.refuse(f"Invalid reduction dimension {axis} for input with {rank} dimensions.")
        gone.add(axis % rank)
    if keepdims:
        return tuple(1 if place in gone else length for place, length in enumerate(dims))
    return tuple(length for place, length in enumerate(dims) if place not in gone)


def no_outputs(c: Inference, *args: Any, **kwargs: Any) -> list[Output]:
    """No output: the operation is there for what it does."""
    return []


def stated(c: Inference, *args: Any, **kwargs: Any) -> list[Output]:
    """Refuse: the caller that adds the node states its outputs.

    Variables and iterators know theirs, placeholders are given one.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(f"the outputs of {c.row.name} are stated where the node is added")


__all__ = [
    "as_requested",
    "broadcasting",
    "cast_to",
    "each_unchanged",
    "equal_shapes",
    "no_outputs",
    "real_valued",
    "reduced",
    "stated",
    "unchanged",
]
