"""What the gradients of operations that broadcast have in common: sums over what was repeated."""

from collections.abc import Callable
from typing import Any

import numpy as np

from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.array.creation import shape_input
from allotment.tf.ops.array.repetition import broadcast_to
from allotment.tf.ops.array.shapes import shape
from allotment.tf.ops.array.shapes import shape_of as _shape_of
from allotment.tf.ops.arrays import Array, as_array
from allotment.tf.ops.autodiff.differentiation import Call, Outline, gradient
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import as_requested
from allotment.tf.ops.reduction.folding import reduce_along
from allotment.tf.ops.table import Needed, dims, operation
from allotment.tf.tensors.dtype import DType, int32
from allotment.tf.tensors.tensor import EagerTensor


def _sum_fault(array: Array, shape: tuple[int, ...]) -> str | None:
    try:
        fits = np.broadcast_shapes(array.shape, shape) == array.shape
    except ValueError:
        fits = False
    return (
        None
        if fits
        else f"{dims(array)} is no shape that [{','.join(map(str, shape))}] could be broadcast to"
    )


def _summed(array: Array, shape: tuple[int, ...]) -> Array:
    new = array.ndim - len(shape)
    longer = (axis for axis, length in enumerate(shape, new) if length != array.shape[axis])
    wide = np.float32 if array.dtype == np.float16 else array.dtype
    total = reduce_along(np.add, array, (*range(new), *longer), wide, True)
    return as_array(total).astype(array.dtype, copy=False).reshape(shape)


#: The opposite of ``BroadcastTo``.
_row = operation("SumToShape", _summed, shape=as_requested, fault=_sum_fault)


def shape_of(tensor: Any) -> Any:
    """The lengths of a tensor's axes: numbers, or in a graph that does not know them a tensor."""
    return tensor.lengths if isinstance(tensor, Outline) else _shape_of(tensor)


def lengths_of(tensor: Any, rank: int | None = None) -> Any:
    """The same one by one: a number for each axis, or a scalar tensor where a graph does not know it.

    ``rank`` is the number of axes if that is known otherwise.

    Raises:
        ValueError: A graph does not even know how many axes there are.
    """
    if isinstance(tensor, Outline):
        return tensor.lengths
    if type(tensor) is EagerTensor:
        return tensor._array.shape
    if tensor.shape.rank is None and rank is not None:
        dims: list[int | None] = [None] * rank
    else:
        rank_of(tensor)
        dims = list(tensor.shape)
    lengths: Any = shape(tensor) if None in dims else None
    return tuple(lengths[axis] if known is None else known for axis, known in enumerate(dims))


def shape_tensor(tensor: Any, dtype: DType = int32) -> Any:
    """The lengths of a tensor's axes, as a tensor of one axis."""
    return (
        constant(tensor.lengths, dtype, (len(tensor.lengths),))
        if isinstance(tensor, Outline)
        else shape(tensor, dtype)
    )


def rank_of(tensor: Any) -> int:
    """The number of axes.

    Raises:
        ValueError: A graph does not know it.
    """
    if isinstance(tensor, Outline):
        return len(tensor.lengths)
    rank: int | None = tensor.shape.rank
    if rank is None:
        raise ValueError(
            f"the rank of {tensor!r} must be known when the graph is built, and it is not. Use `set_shape`."
        )
    return rank


def length_of(tensor: Any, axis: int) -> Any:
    """The length of one axis: a number, or a scalar tensor where a graph does not know it."""
    if isinstance(tensor, Outline):
        return tensor.lengths[axis]
    known = None if tensor.shape.rank is None else tensor.shape[axis]
    return shape(tensor)[axis] if known is None else known


def summed_to(upstream: Any, lengths: Any) -> Any:
    """Add up a gradient over the axes along which a tensor of some shape was broadcast."""
    if type(lengths) is tuple and _has_shape(upstream, lengths):
        return upstream
    return run(_row, (upstream,), shape_input(lengths))


def _has_shape(tensor: Any, lengths: tuple[Any, ...]) -> bool:
    if type(tensor) is EagerTensor:
        return tensor._array.shape == lengths
    # The object for an unknown length is equal to any length.
    known = tensor.shape.is_fully_defined() and all(type(each) is int for each in lengths)
    return known and tuple(tensor.shape) == lengths


@gradient("SumToShape", inputs=False)
def _sum_to_shape(call: Call, upstream: Any) -> Any:
    return broadcast_to(upstream, shape_of(call.inputs[0]))


@gradient("BroadcastTo", inputs=False)
def _broadcast_to(call: Call, upstream: Any) -> Any:
    return summed_to(upstream, shape_of(call.inputs[0]))


def of_pair(
    name: str,
    by_x: Callable[[Any, Any, Any], Any],
    by_y: Callable[[Any, Any, Any], Any],
    *,
    inputs: Needed = True,
) -> None:
    """Enter the gradient of an operation that broadcasts two inputs.

    ``by_x`` and ``by_y`` take the gradient of the output and both inputs, and return the gradient of an input as if
    it had been broadcast before.
    """

    @gradient(name, inputs=inputs)
    def back(call: Call, upstream: Any) -> list[Any]:
        x, y = call.inputs
        return [
            summed_to(by(upstream, x, y), shape_of(each)) if wanted else None
            for by, each, wanted in zip((by_x, by_y), call.inputs, call.wanted, strict=True)
        ]


__all__ = ["length_of", "lengths_of", "of_pair", "rank_of", "shape_of", "shape_tensor", "summed_to"]
