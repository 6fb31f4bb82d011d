"""Gradients of operations that put other elements around a tensor."""

from typing import Any

import numpy as np

from allotment.tf.ops.array.padding import Widths, pad
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.autodiff.broadcasting import shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.deferred import is_known, listed, operand
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.slicing import slice_
from allotment.tf.ops.inference.shape_functions import Inference, Output, numbers, unknown
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.ops.table import operation


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
