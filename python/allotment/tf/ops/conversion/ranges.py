"""The operation ``Range``: numbers in equal steps; ``range`` objects of Python are converted with it."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from allotment.tf.ops.arrays import Array
from allotment.tf.ops.conversion.casting import cast_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import DType, float16, float32, float64, int32, int64
from allotment.tf.tensors.tensor import EagerTensor

#: Types of ranges; each becomes a later one beside it.
_TYPES: Final = (int32, int64, float16, float32, float64)


def _range_fault(start: Array, limit: Array, delta: Array) -> str | None:
    for what, value in (("start", start), ("limit", limit), ("delta", delta)):
        if value.shape not in ((), (1,)):
            return f"{what} must be a scalar, not shape {dims(value)}"
    first, last, step = start.item(), limit.item(), delta.item()
    if step == 0:
        return f"Requires delta != 0: {step}"
    if step > 0 and not first <= last:
        return f"Requires start <= limit when delta > 0: {start[()]}/{limit[()]}"
    if step < 0 and not first >= last:
        return f"Requires start >= limit when delta < 0: {start[()]}/{limit[()]}"
    if not abs((last - first) / step) <= np.iinfo(np.int64).max:
        return f"Requires ((limit - start) / delta) <= {np.iinfo(np.int64).max}"
    return None


def _range(start: Array, limit: Array, delta: Array) -> Array:
    if start.dtype.kind != "f":
        return np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype, like=start)
    # Counted in the type itself: in a wider one, 0.3 / 0.1 of float32 is more than 3.
    made = np.arange(math.ceil(np.abs((limit - start) / delta).item()), dtype=start.dtype, like=start)
    made *= delta
    made += start
    return made


def _range_shape(c: Inference) -> list[Output]:
    for index in (0, 1, 2):
        c.ranked(index, 0)
    values = [c.value(index) for index in (0, 1, 2)]
    if any(each is None for each in values):
        return c.one((None,))
    start, limit, delta = values
    if delta == 0:
        c.refuse("Requires delta != 0")
    if (delta > 0 and start > limit) or (delta < 0 and start < limit):
        sign, order = (">", "<=") if delta > 0 else ("<", ">=")
        c.refuse(f"Requires start {order} limit when delta {sign} 0: {start}/{limit}")
    if c.dtype().is_integer:
        return c.one((-((int(start) - int(limit)) // int(delta)),))
    return c.one((math.ceil(np.abs((limit - start) / delta)),))


RANGE: Final = operation("Range", _range, shape=_range_shape, fault=_range_fault)


def range_of(bounds: Sequence[EagerTensor], dtype: DType | None, name: str | None = None) -> EagerTensor:
    """Return the numbers of a range.

    Args:
        bounds: The start, the limit and the step.
        dtype: The element type; without it the widest of the bounds'.
        name: For error texts, and the name of the node.

    Raises:
        InvalidArgumentError: The step is zero or leads away from the limit.
        TypeError: A bound of a type that ranges do not have.
    """
    if dtype is None:
        for each in bounds:
            if each._dtype not in _TYPES:
                allowed = ", ".join(dtype.name for dtype in _TYPES)
                raise TypeError(
                    f"a range without dtype= is of {allowed}, not of {each._dtype.name}: {each!r}"
                )
        dtype = max((each._dtype for each in bounds), key=_TYPES.index)
    return run(RANGE, [cast_tensor(each, dtype) for each in bounds], name=name)  # type: ignore[no-any-return]


__all__ = ["RANGE", "range_of"]
