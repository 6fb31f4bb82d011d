"""Operations that make numbers in equal steps."""

from typing import Any

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.arguments.integers import (
    axis_of,
    check_scalar,
    number_argument,
)
from allotment.tf.ops.array.array import cast, widened
from allotment.tf.ops.arrays import Array, as_array
from allotment.tf.ops.conversion.ranges import range_of
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output, number
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import as_dtype, float32, float64
from allotment.tf.tensors.tensor import EagerTensor, Tensor


def range(  # noqa: A001 - the name TensorFlow has
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> EagerTensor:
    """Numbers from ``start`` up to, but not including, ``limit``. As ``tf.range``.

    With one number that is the limit, and the start is 0. The type is the widest of the arguments', of int32, int64,
    float16, float32 and float64, unless ``dtype`` says it.

    Raises:
        InvalidArgumentError: ``delta`` is zero or leads away from ``limit``.
        TypeError: An argument of another type.
    """
    if limit is None:
        start, limit = 0, start
    wanted = None if dtype is None else as_dtype(dtype)
    values: list[Any] = [
        value if isinstance(value, Tensor) else to_tensor(value, wanted) for value in (start, limit, delta)
    ]
    return range_of(values, wanted, name)


def _linspace_fault(start: Array, stop: Array, num: int, axis: int) -> str | None:
    if num < 0:
        return f"Requires num >= 0, not {num}"
    try:
        rank = len(np.broadcast_shapes(start.shape, stop.shape))
    except ValueError:
        return f"Incompatible shapes: {dims(start)} vs. {dims(stop)}"
    if not -rank - 1 <= axis <= rank:
        return f"Tried to expand dim index {axis} for tensor with {rank} dimensions."
    return None


def _linspace(start: Array, stop: Array, num: int, axis: int) -> Array:
    first, last = np.broadcast_arrays(start, stop)
    place = axis_of(axis, first.ndim + 1)
    first, last = np.expand_dims(first, place), np.expand_dims(last, place)
    lengths = [1] * first.ndim
    lengths[place] = num
    steps = np.arange(num, dtype=start.dtype, like=start).reshape(lengths)
    made = as_array(first + steps * ((last - first) / start.dtype.type(max(num - 1, 1))))
    if num > 1:
        # Steps that were rounded may miss the end.
        made[(*(slice(None),) * place, slice(num - 1, num))] = last
    return made


def _linspace_shape(c: Inference, num: Any, axis: Any) -> list[Output]:
    dims, count = c.broadcast(c.shape(0), c.shape(1)), number(num)
    if count is not None and count < 0:
        c.refuse(f"Requires num >= 0, not {count}")
    if dims is None:
        return c.one(None)
    place = c.axis(axis, len(dims) + 1)
    if place is None:
        return c.one((None,) * (len(dims) + 1))
    return c.one((*dims[:place], count, *dims[place:]))


_linspace_row = operation("LinSpace", _linspace, shape=_linspace_shape, fault=_linspace_fault)


@in_name_scope("linspace", "Slice")
def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: Any = 0) -> EagerTensor:
    """``num`` numbers in equal steps from ``start`` to ``stop``, both included. As ``tf.linspace``.

    Tensors instead of numbers are gone through element by element, along a new axis. Integers become float64,
    those of 8 and 16 bits float32.

    Raises:
        TypeError: ``num`` is not whole.
    """
    first = to_tensor(start)
    last = to_tensor(stop, like=first._dtype)
    if last._dtype is not first._dtype:
        last = to_tensor(last, first._dtype)
    count = number_argument(widened(num), "num")
    if thread.state.graph is not None:
        check_scalar(num, "num")
    if first._dtype.is_integer:
        wide = float32 if first._dtype.size < 4 else float64
        first, last = cast(first, wide), cast(last, wide)
    return run(  # type: ignore[no-any-return]
        _linspace_row, (first, last), count, number_argument(axis, "axis"), name=name
    )


__all__ = ["linspace", "range"]
