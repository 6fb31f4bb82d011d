"""Operations that make numbers in equal steps, and identity matrices."""

import math
from typing import Any

import numpy as np

from allotment.tf.ops.arguments.integers import (
    axis_of,
    number_argument,
)
from allotment.tf.ops.arguments.shapes import shape_argument
from allotment.tf.ops.array.array import cast, widened
from allotment.tf.ops.array.creation import eager_const, fill
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.deferred import is_known, operand
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output, number
from allotment.tf.ops.math.arithmetic import minimum
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import as_dtype, float16, float32, float64, int32, int64, string
from allotment.tf.tensors.tensor import EagerTensor, Tensor

#: Types of ranges, each before those that it becomes beside them.
_RANGE_TYPES = (int32, int64, float16, float32, float64)


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
        return np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)
    # Counted in the type itself: in a wider one, 0.3 / 0.1 of float32 is more than 3.
    made = np.arange(math.ceil(np.abs((limit - start) / delta).item()), dtype=start.dtype)
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


range_row = operation("Range", _range, shape=_range_shape, fault=_range_fault)


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
    if wanted is None:
        for value in values:
            if value._dtype not in _RANGE_TYPES:
                allowed = ", ".join(dtype.name for dtype in _RANGE_TYPES)
                raise TypeError(
                    f"a range without dtype= is of {allowed}, not of {value._dtype.name}: {value!r}"
                )
        wanted = max((value._dtype for value in values), key=_RANGE_TYPES.index)
    values = [cast(value, wanted) for value in values]
    return run(range_row, values, name=name)  # type: ignore[no-any-return]


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
    steps = np.arange(num, dtype=start.dtype).reshape(lengths)
    made = np.asarray(first + steps * ((last - first) / start.dtype.type(max(num - 1, 1))))
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


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: Any = 0) -> EagerTensor:
    """``num`` numbers in equal steps from ``start`` to ``stop``, both included. As ``tf.linspace``.

    Tensors instead of numbers are gone through element by element, along a new axis. Integers become float64.

    Raises:
        TypeError: ``num`` is not whole.
    """
    first = to_tensor(start)
    last = to_tensor(stop, like=first._dtype)
    if last._dtype is not first._dtype:
        last = to_tensor(last, first._dtype)
    count = number_argument(widened(num), "num")
    if first._dtype.is_integer:
        first, last = cast(first, float64), cast(last, float64)
    return run(  # type: ignore[no-any-return]
        _linspace_row, (first, last), count, number_argument(axis, "axis"), name=name
    )


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = float32,
    name: str | None = None,
) -> EagerTensor:
    """A matrix with ones on its diagonal, or a batch of them. As ``tf.eye``.

    Raises:
        TypeError: A number of rows or columns that is not whole.
    """
    from allotment.tf.ops.linalg.diagonals import diag

    for given in (num_rows, num_columns):
        if isinstance(given, list | tuple):
            raise TypeError(
                "Arguments `num_rows` and `num_columns` must be positive integer values. Received: "
                f"num_rows={num_rows}, num_columns={num_columns}"
            )
    rows = number_argument(widened(num_rows), "num_rows")
    columns = rows if num_columns is None else number_argument(widened(num_columns), "num_columns")
    wanted = as_dtype(dtype)
    batch = () if batch_shape is None else shape_argument(batch_shape)
    side = rows if columns is rows else smaller(rows, columns)
    one = eager_const(np.ones((), wanted.numpy)) if wanted is not string else to_tensor(1, wanted)
    ones = fill([*batch, side], one)
    return diag(ones, num_rows=rows, num_cols=columns, name=name or "diag")


def smaller(one: Any, other: Any) -> Any:
    """The smaller of two numbers among the arguments; of what is not known, a tensor."""
    if is_known(one) and is_known(other):
        return min(one, other)
    return minimum(operand(one), operand(other))


__all__ = ["eye", "linspace", "range"]
