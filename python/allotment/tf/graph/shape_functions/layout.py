"""Shapes of operations that move axes, or elements along them."""

from typing import Any

from allotment.tf.ops.deferred import Deferred, is_known
from allotment.tf.ops.inference.shape_functions import Inference, Output, numbers, shape_function, unknown


@shape_function("Transpose", "ConjugateTranspose")
def _transpose(c: Inference, perm: Any) -> list[Output]:
    dims = c.shape()
    if perm is None:
        return c.one(None if dims is None else dims[::-1])
    order = numbers(perm)
    if order is None or dims is None:
        return c.one(unknown(len(dims) if dims is not None else None if order is None else len(order)))
    if len(order) != len(dims):
        c.refuse(f"Dimension must be {len(dims)} but is {len(order)}")
    if None in order:
        return c.one(unknown(len(dims)))
    places = [c.axis(axis, len(dims), "perm dim") for axis in order]
    if len(set(places)) != len(places):
        c.refuse(f"perm must name each axis once, not {list(order)}")
    return c.one(tuple(dims[place] for place in places if place is not None))


@shape_function("ExpandDims")
def _expand_dims(c: Inference, axis: Any) -> list[Output]:
    dims = c.shape()
    if dims is None:
        return c.one(None)
    rank = len(dims)
    if type(axis) is Deferred:
        return c.one(unknown(rank + 1))
    if not -rank - 1 <= axis <= rank:
        c.refuse(f"dim {axis} not in the interval [{-rank - 1}, {rank}].")
    place = axis + rank + 1 if axis < 0 else axis
    return c.one((*dims[:place], 1, *dims[place:]))


@shape_function("Squeeze")
def _squeeze(c: Inference, axes: Any) -> list[Output]:
    dims = c.shape()
    if dims is None:
        return c.one(None)
    if not axes:
        # Which axes go depends on the lengths.
        return c.one(None if None in dims else tuple(length for length in dims if length != 1))
    gone = {c.axis(axis, len(dims), "squeeze dim") for axis in axes}
    for place in gone:
        assert place is not None
        if dims[place] not in (None, 1):
            c.refuse(f"Can not squeeze dim[{place}], expected a dimension of 1, got {dims[place]}")
    return c.one(tuple(length for place, length in enumerate(dims) if place not in gone))


@shape_function("ReverseV2")
def _reverse(c: Inference, axes: Any, scalar: bool) -> list[Output]:
    dims = c.shape()
    if scalar:
        c.refuse("Shape must be rank 1 but is rank 0")
    if dims is not None and is_known(axes):
        places = [c.axis(axis, len(dims)) for axis in axes]
        if len(set(places)) != len(places):
            c.refuse(f"axis specified more than once: {list(axes)}")
    return c.one(c.inputs[0]._shape)


@shape_function("Roll")
def _roll(c: Inference, shift: Any, axis: Any) -> list[Output]:
    c.at_least(0, 1)
    shifts, axes = numbers(shift), numbers(axis)
    if shifts is not None and axes is not None and len(shifts) != len(axes):
        c.refuse(f"Shapes must be equal, but there are {len(shifts)} shifts and {len(axes)} axes")
    return c.one(c.inputs[0]._shape)


@shape_function("ReverseSequence")
def _reverse_sequence(c: Inference, seq: int, batch: int) -> list[Output]:
    dims, lengths = c.shape(), c.ranked(1, 1)
    if dims is None:
        return c.one(None)
    places = [c.axis(seq, len(dims), "seq_dim"), c.axis(batch, len(dims), "batch_dim")]
    assert places[1] is not None
    batches = c.same(dims[places[1]], lengths[0])
    return c.one((*dims[: places[1]], batches, *dims[places[1] + 1 :]))


__all__: list[str] = []
