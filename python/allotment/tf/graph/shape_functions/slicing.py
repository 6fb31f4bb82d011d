"""Shapes of parts of tensors."""

from typing import Any

from allotment.tf.ops.deferred import is_known
from allotment.tf.ops.inference.shape_functions import (
    Dims,
    Inference,
    Output,
    lengths,
    number,
    numbers,
    shape_function,
    unknown,
)


@shape_function("StridedSlice")
def _strided_slice(c: Inference, index: tuple[Any, ...]) -> list[Output]:
    return c.one(_part(c, c.shape(), index))


def _part(c: Inference, dims: Dims, index: tuple[Any, ...]) -> Dims:
    """The shape of what an index takes out of a tensor."""
    # Not by `in`: what is known only in a session cannot be compared.
    ellipses = sum(each is ... for each in index)
    if ellipses > 1:
        c.refuse("Multiple ellipses in slice spec not allowed")
    named = sum(each is not None and each is not ... for each in index)
    if dims is None:
        return None
    if named > len(dims):
        c.refuse(f"Index out of range using input dim {len(dims)}; input has only {len(dims)} dims")
    made: list[int | None] = []
    axis = 0
    for each in index if ellipses else (*index, ...):
        if each is None:
            made.append(1)
        elif each is ...:
            rest = len(dims) - named
            made += dims[axis : axis + rest]
            axis += rest
        elif isinstance(each, slice):
            made.append(_interval(c, dims[axis], each, axis))
            axis += 1
        else:
            _check_place(c, dims[axis], number(each), axis)
            axis += 1
    return tuple(made)


def _interval(c: Inference, length: int | None, part: slice, axis: int) -> int | None:
    if part.step == 0 and is_known(part):
        c.refuse(f"strides[{axis}] must be non-zero")
    if not is_known(part):
        return None
    if length is not None:
        return len(range(*part.indices(length)))
    # All of an axis of unknown length may be of any.
    return None


def _check_place(c: Inference, length: int | None, place: int | None, axis: int) -> None:
    if length is not None and place is not None and not -length <= place < length:
        c.refuse(f"slice index {place} of dimension {axis} out of bounds.")


@shape_function("Slice")
def _slice(c: Inference, begins: Any, sizes: Any) -> list[Output]:
    dims, first, count = c.shape(), numbers(begins), numbers(sizes)
    rank = next((len(each) for each in (dims, first, count) if each is not None), None)
    if rank is None:
        return c.one(None)
    for each in (dims, first, count):
        if each is not None and len(each) != rank:
            c.refuse(f"Shape must be rank {len(each)} but is rank {rank}")
    triples = zip(
        dims or unknown(rank) or (), first or unknown(rank) or (), count or unknown(rank) or (), strict=True
    )
    return c.one(tuple(_run(c, *triple, axis) for axis, triple in enumerate(triples)))


def _run(c: Inference, length: int | None, begin: int | None, size: int | None, axis: int) -> int | None:
    # Whether there are so many elements is left to the session, as in TensorFlow, to which -1 is an unknown number.
    for what, given in (("begin", begin), ("size", size)):
        if given is not None and given < -1:
            c.refuse(f"{what}[{axis}] must be at least -1, but is {given}")
    if size != -1:
        return size
    if length is None or begin is None or begin == -1:
        return None
    if begin > length:
        c.refuse(f"Expected begin[{axis}] in [0, {length}], but got {begin}")
    return length - begin


@shape_function("StridedSliceGrad")
def _strided_slice_grad(c: Inference, shape: Any, index: tuple[Any, ...]) -> list[Output]:
    dims = lengths(shape)
    if dims is not None:
        c.merged(_part(c, dims, index), c.shape())
    return c.one(dims)


__all__: list[str] = []
