"""The known part of a tensor's shape: all of an eager one's, and in a graph perhaps less."""

from allotment.tf.tensors.tensor import EagerTensor, Tensor


def rank_of(tensor: Tensor) -> int | None:
    """The number of axes, ``None`` if a graph does not know it."""
    return tensor._array.ndim if type(tensor) is EagerTensor else tensor.shape.rank


def agree(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors have one shape, as far as a graph knows them."""
    if type(x) is EagerTensor and type(y) is EagerTensor:
        return x._array.shape == y._array.shape
    return x.shape.is_compatible_with(y.shape)


__all__ = ["agree", "rank_of"]
