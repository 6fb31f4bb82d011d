"""What is known of the shape of a tensor: all of an eager one's, and in a graph perhaps less."""

from typing import Any

from allotment.tf.ops.array.shapes import shape, size
from allotment.tf.tensors.tensor import EagerTensor, Tensor


def rank_of(tensor: Tensor) -> int | None:
    """The number of axes, ``None`` if a graph does not know it."""
    return tensor._array.ndim if type(tensor) is EagerTensor else tensor.shape.rank


def agree(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors have one shape, as far as a graph knows them."""
    if type(x) is EagerTensor and type(y) is EagerTensor:
        return x._array.shape == y._array.shape
    return x.shape.is_compatible_with(y.shape)


def shape_of(tensor: Any) -> Any:
    """The lengths of a tensor's axes as an argument: numbers, or in a graph that does not know them a tensor."""
    if type(tensor) is EagerTensor:
        return tensor._array.shape
    return tuple(tensor.shape) if tensor.shape.is_fully_defined() else shape(tensor)


def size_of(tensor: Any) -> Any:
    """The number of elements as an argument: a number, or in a graph that does not know it a tensor."""
    count = tensor.shape.num_elements()
    return size(tensor) if count is None else count


__all__ = ["agree", "rank_of", "shape_of", "size_of"]
