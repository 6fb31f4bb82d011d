"""Shapes of operations that make one tensor of several, or several of one."""

from typing import Any

from allotment.tf.ops.deferred import Deferred
from allotment.tf.ops.inference.shape_functions import (
    Dims,
    Inference,
    Output,
    added,
    number,
    numbers,
    shape_function,
    unknown,
)


@shape_function("ConcatV2")
def _concat(c: Inference, axis: Any) -> list[Output]:
    shapes = c.shapes()
    known = [each for each in shapes if each is not None]
    if not known:
        return c.one(None)
    if any(len(each) == 0 for each in known):
        c.refuse("Can't concatenate scalars (use tf.stack instead)")
    if type(axis) is Deferred:
        return c.one(unknown(len(known[0]) if all(len(each) == len(known[0]) for each in known) else None))
    least = -axis if axis < 0 else axis + 1
    for each in known:
        if len(each) < least:
            c.refuse(f"Shape must be at least rank {least} but is rank {len(each)}")
    place = axis % len(known[0])
    merged = c.all_merged(_without(each, place) for each in known)
    assert merged is not None
    total = added(*(None if each is None else each[place] for each in shapes))
    return c.one((*merged[:place], total, *merged[place + 1 :]))


def _without(dims: tuple[int | None, ...], place: int) -> Dims:
    """A shape with the length of one axis forgotten."""
    return (*dims[:place], None, *dims[place + 1 :])


@shape_function("Pack")
def _pack(c: Inference, axis: int) -> list[Output]:
    dims = c.all_merged(c.shapes())
    if dims is None:
        return c.one(None)
    place = c.axis(axis, len(dims) + 1)
    return c.one((*dims[:place], len(c.inputs), *dims[place:]))


@shape_function("Unpack", many=True)
def _unpack(c: Inference, num: int | None, axis: int) -> list[Output]:
    dims = c.shape()
    if dims is not None:
        place = c.axis(axis, len(dims))
        assert place is not None
        num = c.same(dims[place], num)
        dims = dims[:place] + dims[place + 1 :]
    if num is None:
        c.refuse("Cannot infer argument `num` from shape: it must be known when the graph is built")
    return [(c.dtype(), dims)] * num


@shape_function("Split", many=True)
def _split(c: Inference, count: int, axis: Any) -> list[Output]:
    dims = c.at_least(0, 1)
    if dims is None:
        return [(c.dtype(), None)] * count
    place = c.axis(axis, len(dims), "split_dim")
    if place is None:
        return [(c.dtype(), unknown(len(dims)))] * count
    whole = dims[place]
    if whole is not None and whole % count:
        c.refuse(
            f"Dimension size must be evenly divisible by {count} but is {whole}. Number of ways to split should evenly "
            f"divide the split dimension"
        )
    part = None if whole is None else whole // count
    return [(c.dtype(), (*dims[:place], part, *dims[place + 1 :]))] * count


@shape_function("SplitV", many=True)
def _split_sizes(c: Inference, sizes: Any, axis: Any) -> list[Output]:
    dims, parts = c.at_least(0, 1), numbers(sizes)
    if parts is None:
        c.refuse(
            "Cannot infer argument `num` from shape: how many sizes there are must be known when the graph is built"
        )
    if dims is None:
        return [(c.dtype(), None)] * len(parts)
    place = c.axis(axis, len(dims), "split_dim")
    if place is None:
        return [(c.dtype(), unknown(len(dims)))] * len(parts)
    return [(c.dtype(), (*dims[:place], part, *dims[place + 1 :])) for part in _parts(c, parts, dims[place])]


def _parts(c: Inference, sizes: tuple[int | None, ...], whole: int | None) -> list[int | None]:
    """The lengths of the parts; -1 is what is left."""
    if sizes.count(-1) > 1:
        c.refuse("can only have one -1 in size_splits")
    rest = [each for each in sizes if each != -1]
    total = added(*rest)
    if total is None or whole is None:
        return [None if each == -1 else each for each in sizes]
    if total > whole or (-1 not in sizes and total != whole):
        c.refuse(f"can't split axis of size {whole} into pieces of size [{','.join(map(str, sizes))}]")
    return [whole - total if each == -1 else each for each in sizes]


@shape_function("IdentityN", many=True)
def _identity_n(c: Inference, count: int | None = None) -> list[Output]:
    return [(each._dtype, each._shape) for each in c.inputs[:count]]


@shape_function("DynamicPartition", many=True)
def _partition(c: Inference, count: int) -> list[Output]:
    data, partitions = c.shape(0), c.shape(1)
    if data is None or partitions is None:
        return [(c.dtype(), None)] * count
    if len(data) < len(partitions):
        c.refuse(f"Shape must be at least rank {len(partitions)} but is rank {len(data)}")
    c.merged(data[: len(partitions)], partitions)
    return [(c.dtype(), (None, *data[len(partitions) :]))] * count


@shape_function("DynamicStitch")
def _stitch(c: Inference) -> list[Output]:
    count = len(c.inputs) // 2
    rest: Dims = None
    largest: int | None = -1
    for index in range(count):
        data, places = c.shape(index), c.shape(count + index)
        if data is not None and places is not None:
            if len(data) < len(places):
                c.refuse(f"Shape must be at least rank {len(places)} but is rank {len(data)}")
            c.merged(data[: len(places)], places)
            rest = c.merged(rest, data[len(places) :])
        value = c.value(count + index)
        largest = None if value is None or largest is None else max(largest, int(value.max(initial=-1)))
    return c.one(None if rest is None else (None if largest is None else largest + 1, *rest))


@shape_function("UnravelIndex")
def _unravel(c: Inference) -> list[Output]:
    places, lengths = c.at_most(0, 1), c.ranked(1, 1)
    return c.one(None if places is None else (lengths[0], *places))


@shape_function("HistogramFixedWidth")
def _histogram(c: Inference, count: Any, dtype: Any) -> list[Output]:
    import numpy as np

    from allotment.tf.tensors.dtype import BY_NUMPY

    c.ranked(1, 1)
    bins = number(count)
    if bins is not None and bins <= 0:
        c.refuse(f"Requires nbins > 0: {bins}")
    return c.one((bins,), BY_NUMPY[np.dtype(dtype)])


@shape_function("HistogramFixedWidthBins")
def _histogram_bins(c: Inference, count: Any) -> list[Output]:
    from allotment.tf.tensors.dtype import int32

    return c.one(c.inputs[0]._shape, int32)


__all__: list[str] = []
