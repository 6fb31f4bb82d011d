"""Gradients of operations that say the same elements several times, or put others around them."""

from typing import Any

import numpy as np

from allotment.tf.ops.arguments.integers import axis_of
from allotment.tf.ops.array.array import size
from allotment.tf.ops.array.creation import reshape
from allotment.tf.ops.array.joining import concat, stack
from allotment.tf.ops.array.layout import transpose
from allotment.tf.ops.array.repetition import pad, repeat
from allotment.tf.ops.array.sequences import range as range_of
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.autodiff.broadcasting import length_of, lengths_of, shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.deferred import is_known, listed, operand
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.partition import invert_permutation
from allotment.tf.ops.indexing.slicing import slice_
from allotment.tf.ops.inference.shape_functions import Inference, Output, numbers, unknown
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.ops.reduction.segments import unsorted_segment_sum
from allotment.tf.ops.table import operation

Widths = tuple[tuple[int, int], ...]


@gradient("Tile", inputs=False)
def _tile(call: Call, upstream: Any) -> Any:
    (multiples,) = call.args
    lengths = shape_of(call.inputs[0])
    if type(lengths) is tuple and is_known(multiples):
        apart = [each for pair in zip(multiples, lengths, strict=True) for each in pair]
        return reduce_sum(reshape(upstream, apart), list(range(0, len(apart), 2)))
    both = stack([listed(multiples), listed(lengths) if type(lengths) is tuple else lengths])
    pairs = reshape(transpose(both), [-1])
    return reduce_sum(reshape(upstream, pairs), range_of(0, size(pairs), 2))


@gradient("Repeat", inputs=False)
def _repeat(call: Call, upstream: Any) -> Any:
    times, axis = call.args
    x = call.inputs[0]
    if x.shape.rank is None:
        rows, every = length_of(x, axis), range_of(size(shape_of(x)))
        order: Any = concat([every[axis : axis + 1], every[:axis], every[axis + 1 :]], 0)
        places = repeat(range_of(rows), listed(times), 0)
        return transpose(
            unsorted_segment_sum(transpose(upstream, order), places, rows), invert_permutation(order)
        )
    lengths = lengths_of(x)
    axis = axis_of(axis, len(lengths))
    if is_known(times) and len(times) == 1:
        apart = [*lengths[: axis + 1], times[0], *lengths[axis + 1 :]]
        return reduce_sum(reshape(upstream, apart), axis + 1)
    order = [axis, *(each for each in range(len(lengths)) if each != axis)]
    rows = lengths[axis]
    # Each row was said as often as the numbers tell; one number counts for all rows.
    places = repeat(range_of(rows), listed(times), 0)
    summed = unsorted_segment_sum(transpose(upstream, order), places, rows)
    return transpose(summed, sorted(range(len(order)), key=order.__getitem__))


@gradient("Pad", inputs=False)
def _pad(call: Call, upstream: Any) -> Any:
    return _inside(call, upstream)


@gradient("PadV2", inputs=False)
def _pad_with(call: Call, upstream: Any) -> list[Any]:
    inside = _inside(call, upstream)
    return [inside, reduce_sum(upstream) - reduce_sum(inside) if call.wanted[1] else None]


def _inside(call: Call, upstream: Any) -> Any:
    widths = call.args[0]
    if is_known(widths) and not widths:
        return upstream
    starts = [before for before, _ in widths] if is_known(widths) else operand(widths)[:, 0]
    return slice_(upstream, starts, shape_of(call.inputs[0]))


def _folded(array: Array, widths: Widths, mode: str) -> Array:
    """Add the mirror images at the ends of each axis to what they are images of."""
    result = array
    first = 1 if mode == "reflect" else 0
    for axis, (before, after) in enumerate(widths):
        moved = np.moveaxis(result, axis, 0)
        length = len(moved) - before - after
        inner = moved[before : before + length].copy()
        inner[first : first + before] += moved[:before][::-1]
        stop = length - first
        inner[stop - after : stop] += moved[before + length :][::-1]
        result = np.moveaxis(inner, 0, axis)
    return result.copy()


def _folded_shape(c: Inference, widths: Any, mode: str) -> list[Output]:
    source = c.shape()
    known: Any = numbers(widths)
    if source is None or known is None:
        return c.one(unknown(None if source is None else len(source)))
    if len(known) != len(source):
        c.refuse(f"Shape must be rank {len(known)} but is rank {len(source)}")
    pairs = zip(source, known, strict=True)
    return c.one(tuple(None if None in (length, *pair) else length - sum(pair) for length, pair in pairs))


_mirror_row = operation("MirrorPadGrad", _folded, shape=_folded_shape)


@gradient("MirrorPad", inputs=False)
def _mirror(call: Call, upstream: Any) -> Any:
    return run(_mirror_row, (upstream,), *call.args)


@gradient("MirrorPadGrad", inputs=False)
def _mirror_grad(call: Call, upstream: Any) -> Any:
    widths, mode = call.args
    return pad(upstream, listed(widths), mode.upper())


__all__: list[str] = []
