"""Gradients of operations that pick elements by truth values."""

import math
from typing import Any

import numpy as np

from allotment.tf.ops.arguments.integers import axis_of
from allotment.tf.ops.array.creation import shape_input
from allotment.tf.ops.arrays import Array, in_single
from allotment.tf.ops.autodiff.broadcasting import shape_of, summed_to
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.masking import boolean_mask, where
from allotment.tf.ops.inference.common import as_requested
from allotment.tf.ops.table import operation


def _unmasked(picked: Array, mask: Array, shape: tuple[int, ...], axis: int) -> Array:
    whole = np.zeros(shape, picked.dtype, like=picked)
    first = axis_of(axis, len(shape))
    covered = math.prod(shape[first : first + mask.ndim])
    flat = whole.reshape(*shape[:first], covered, *shape[first + mask.ndim :])
    places: Any = (*(slice(None),) * first, np.flatnonzero(mask))
    # Added, as TensorFlow adds them, so that a negative zero becomes a positive one.
    flat[places] += picked
    return whole


_mask_row = operation("BooleanMaskGrad", in_single(_unmasked), shape=as_requested, same_dtype=False)


@gradient("BooleanMask", inputs=(1,))
def _mask(call: Call, upstream: Any) -> Any:
    array, mask = call.inputs
    return run(_mask_row, (upstream, mask), shape_input(shape_of(array)), *call.args)


@gradient("BooleanMaskGrad", inputs=(1,))
def _mask_grad(call: Call, upstream: Any) -> Any:
    return boolean_mask(upstream, call.inputs[1], call.args[1])


@gradient("SelectV2", inputs=(0,))
def _select(call: Call, upstream: Any) -> list[Any]:
    condition, x, y = call.inputs
    return [
        None,
        summed_to(where(condition, upstream, 0), shape_of(x)) if call.wanted[1] else None,
        summed_to(where(~condition, upstream, 0), shape_of(y)) if call.wanted[2] else None,
    ]


__all__: list[str] = []
