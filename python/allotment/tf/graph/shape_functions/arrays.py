"""Shapes of operations that arrange elements in a given shape, and of those that say what is known of shapes."""

from typing import Any

import numpy as np

from allotment.tf.ops.inference.shape_functions import (
    Dims,
    Inference,
    Output,
    added,
    lengths,
    multiplied,
    numbers,
    shape_function,
    unknown,
)
from allotment.tf.tensors.dtype import int32


@shape_function("Reshape")
def _reshape(c: Inference, shape: Any) -> list[Output]:
    dims, source = lengths(shape), c.shape()
    if dims is None:
        return c.one(None)
    total = None if source is None else multiplied(*source)
    wanted = multiplied(*(each for each in dims if each is not None))
    holes = dims.count(None)
    if source is not None and source.count(None) == 1 and holes == 0 and wanted is not None:
        known = multiplied(*(each for each in source if each is not None))
        if known and wanted % known:
            c.refuse(f"Dimension size must be evenly divisible by {known} but is {wanted}")
    if total is None or wanted is None:
        return c.one(dims)
    if holes == 0 and wanted != total:
        c.refuse(f"Cannot reshape a tensor with {total} elements to shape {_shown(dims)} ({wanted} elements)")
    if holes and wanted == 0 and total != 0:
        c.refuse(f"Cannot reshape a tensor with {total} elements to shape {_shown(dims)} (0 elements)")
    if holes == 1:
        if wanted and total % wanted:
            c.refuse(
                f"Cannot reshape a tensor with {total} elements to shape {_shown(dims)}: {total} is not a multiple of "
                f"{wanted}"
            )
        if wanted:
            dims = tuple(total // wanted if each is None else each for each in dims)
    return c.one(dims)


def _shown(dims: Dims) -> str:
    return f"[{','.join('?' if each is None else str(each) for each in dims or ())}]"


@shape_function("Fill")
def _fill(c: Inference, shape: Any) -> list[Output]:
    c.ranked(0, 0)
    if type(shape) is tuple and any(type(each) is int and each < 0 for each in shape):
        c.refuse(f"Fill dimensions must be >= 0, but are {list(shape)}")
    return c.one(_given(c, shape))


def _given(c: Inference, shape: Any) -> Dims:
    """The shape that an operation is given; a negative length is left to the session, as in TensorFlow."""
    found = numbers(shape)
    if found is None:
        return None
    for each in found:
        if each is not None and each < -1:
            c.refuse(f"Dimension {each} must be >= -1")
    return lengths(shape)


@shape_function("EnsureShape")
def _ensure_shape(c: Inference, shape: Any) -> list[Output]:
    return c.one(c.merged(c.shape(), shape._dims))


@shape_function("Bitcast")
def _bitcast(c: Inference, dtype: Any) -> list[Output]:
    have, wanted = c.dtype().numpy.itemsize, dtype.numpy.itemsize
    dims = c.shape()
    if have < wanted:
        dims = c.at_least(0, 1)
        if dims is not None:
            c.same(dims[-1], wanted // have)
            dims = dims[:-1]
    elif have > wanted and dims is not None:
        dims = (*dims, have // wanted)
    return c.one(dims, dtype)


@shape_function("Shape")
def _shape(c: Inference, dtype: Any) -> list[Output]:
    dims = c.shape()
    return c.one((None if dims is None else len(dims),), dtype)


@shape_function("ShapeN", many=True)
def _shape_n(c: Inference, dtype: Any) -> list[Output]:
    return [(dtype, (None if dims is None else len(dims),)) for dims in c.shapes()]


@shape_function("Size")
def _size(c: Inference, dtype: Any) -> list[Output]:
    return c.one((), dtype)


@shape_function("Rank")
def _rank(c: Inference) -> list[Output]:
    return c.one((), int32)


@shape_function("BroadcastTo")
def _broadcast_to(c: Inference, shape: Any) -> list[Output]:
    source, dims = c.shape(), _given(c, shape)
    if dims is None or source is None:
        return c.one(dims)
    if len(source) > len(dims):
        c.refuse(f"Rank of input ({len(source)}) must be no greater than rank of output shape ({len(dims)})")
    for have, wanted in zip(reversed(source), reversed(dims), strict=False):
        # TensorFlow leaves lengths of zero to the session.
        if have not in (None, 0, 1, wanted) and wanted is not None:
            c.refuse(f"Dimensions must be equal, but are {have} and {wanted}")
    return c.one(dims)


@shape_function("SumToShape")
def _sum_to_shape(c: Inference, shape: Any) -> list[Output]:
    return c.one(lengths(shape))


@shape_function("BroadcastArgs")
def _broadcast_args(c: Inference) -> list[Output]:
    ranks = [c.ranked(index, 1)[0] for index in (0, 1)]
    return c.one((None if None in ranks else max(rank for rank in ranks if rank is not None),))


@shape_function("Tile")
def _tile(c: Inference, multiples: Any) -> list[Output]:
    source, times = c.shape(), _given(c, multiples)
    if times is None:
        return c.one(unknown(None if source is None else len(source)))
    if source is None:
        source = (None,) * len(times)
    if len(source) != len(times):
        c.refuse(f"Shape must be rank {len(times)} but is rank {len(source)}")
    return c.one(tuple(multiplied(*pair) for pair in zip(source, times, strict=True)))


@shape_function("Repeat")
def _repeat(c: Inference, repeats: Any, axis: int) -> list[Output]:
    source, times = c.shape(), numbers(repeats)
    if source is None:
        return c.one(None)
    place = c.axis(axis, len(source))
    if place is None:
        return c.one(unknown(len(source)))
    dims = list(source)
    if times is None or any(each is not None and each < 0 for each in times):
        dims[place] = None
    elif len(times) == 1:
        dims[place] = multiplied(source[place], times[0])
    else:
        c.same(source[place], len(times))
        dims[place] = added(*times)
    return c.one(tuple(dims))


@shape_function("Pad", "PadV2", "MirrorPad")
def _pad(c: Inference, widths: Any, *mode: Any) -> list[Output]:
    source = c.shape()
    if len(c.inputs) > 1:
        c.ranked(1, 0)
    known: Any = numbers(widths)
    if source is None or known is None:
        return c.one(unknown(len(source) if source is not None else None if known is None else len(known)))
    if len(known) != len(source):
        c.refuse(f"Shape must be rank {len(known)} but is rank {len(source)}")
    for pair in known:
        if any(each is not None and each < 0 for each in pair):
            c.refuse(f"Paddings must be non-negative: {pair[0]}, {pair[1]}")
    return c.one(
        tuple(added(before, length, after) for (before, after), length in zip(known, source, strict=True))
    )


@shape_function("MirrorPadGrad")
def _mirror_pad_grad(c: Inference, widths: Any, mode: str) -> list[Output]:
    source = c.shape()
    known: Any = numbers(widths)
    if source is None or known is None:
        return c.one(unknown(None if source is None else len(source)))
    if len(known) != len(source):
        c.refuse(f"Shape must be rank {len(known)} but is rank {len(source)}")
    pairs = zip(source, known, strict=True)
    return c.one(tuple(None if None in (length, *pair) else length - sum(pair) for length, pair in pairs))


@shape_function("Const")
def _const(c: Inference, value: Any) -> list[Output]:
    from allotment.tf.tensors.dtype import BY_NUMPY

    return [(BY_NUMPY[np.asarray(value).dtype], np.shape(value))]


__all__: list[str] = []
