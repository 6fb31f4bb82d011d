"""Operations that make tensors of a rule: numbers in order, marks at places."""

import math
from typing import Any

import numpy as np

from allotment.devices.placement import thread
from allotment.tf.ops.arguments.integers import (
    attribute_argument,
    axis_of,
    check_scalar,
    dtype_of,
    number_argument,
)
from allotment.tf.ops.arguments.shapes import shape_argument
from allotment.tf.ops.array.array import cast, widened
from allotment.tf.ops.array.creation import eager_const, fill
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_tensor, to_tensor_if_it_fits
from allotment.tf.ops.deferred import Deferred, is_known, operand
from allotment.tf.ops.execute import check_types, run
from allotment.tf.ops.inference.shape_functions import Dims, Inference, Output, number
from allotment.tf.ops.math.arithmetic import minimum
from allotment.tf.ops.table import dims, operation
from allotment.tf.ops.types.element_types import REALS
from allotment.tf.tensors.dtype import as_dtype, float16, float32, float64, int32, int64, string
from allotment.tf.tensors.dtype import bool as bool_
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


_range_row = operation("Range", _range, shape=_range_shape, fault=_range_fault)


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
    return run(_range_row, values, name=name)  # type: ignore[no-any-return]


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


def _one_hot_fault(on: Array, off: Array, indices: Array, depth: int, axis: int) -> str | None:
    if depth < 0:
        return f"depth must be non-negative, got: {depth}"
    if axis != -1 and not 0 <= axis <= indices.ndim:
        return f"Expected axis to be -1 or between [0, {indices.ndim + 1}).  But received: {axis}"
    for what, value in (("on_value", on), ("off_value", off)):
        if value.ndim:
            return f"{what} must be a scalar, but got: {dims(value)}"
    return None


def _one_hot(on: Array, off: Array, indices: Array, depth: int, axis: int) -> Array:
    place = axis_of(axis, indices.ndim + 1)
    shape = (*indices.shape[:place], depth, *indices.shape[place:])
    # Zeros come without being written.
    made = np.full(shape, off) if off.dtype.hasobject or off else np.zeros(shape, off.dtype)
    before, behind = math.prod(shape[:place]), math.prod(shape[place + 1 :])
    numbers = indices.reshape(before, behind)
    row, column = np.nonzero(np.logical_and(np.greater_equal(numbers, 0), np.less(numbers, depth)))
    made.reshape(before, depth, behind)[row, numbers[row, column], column] = on
    return made


def _one_hot_shape(c: Inference, depth: Any, axis: int) -> list[Output]:
    c.ranked(0, 0)
    c.ranked(1, 0)
    dims: Dims = c.shape(2)
    length = None if type(depth) is Deferred else depth
    if length is not None and length < 0:
        c.refuse(f"Dimension size, given by scalar input 1, must be non-negative but is {length}")
    if dims is None:
        return c.one(None)
    if axis < -1:
        c.refuse(f"axis must be >= -1, but is {axis}")
    # An axis that is too large is refused when the node runs.
    place = len(dims) if axis == -1 else min(axis, len(dims))
    return c.one((*dims[:place], length, *dims[place:]))


_one_hot_row = operation("OneHot", _one_hot, shape=_one_hot_shape, fault=_one_hot_fault)


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """Mark the places that numbers stand for along a new axis. As ``tf.one_hot``.

    A number outside of ``depth`` marks nothing.

    Args:
        indices: The numbers.
        depth: The length of the new axis.
        on_value: The mark, 1 unless given.
        off_value: What is where no mark is, 0 unless given.
        axis: Where the new axis is put, -1 for the end.
        dtype: The type of the result; without it that of the values, or float32.
        name: For error texts.

    Raises:
        TypeError: The values have different types, or not ``dtype``.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    on, off = (None if mark is None else to_tensor_if_it_fits(mark, wanted) for mark in (on_value, off_value))
    for what, mark in (("on_value", on), ("off_value", off)):
        if mark is not None and wanted is not None and mark._dtype is not wanted:
            raise TypeError(f"dtype {mark._dtype} of {what} does not match dtype parameter {wanted}")
    wanted = wanted or next((mark._dtype for mark in (on, off) if mark is not None), float32)
    on = to_tensor(1, wanted) if on is None else on
    off = to_tensor(0, wanted) if off is None else off
    if on._dtype is not off._dtype:
        raise TypeError(f"dtype {on._dtype} of on_value does not match dtype {off._dtype} of off_value")
    numbers = to_tensor([] if _is_nothing(indices) else indices, int32 if _is_nothing(indices) else None)
    place = -1 if axis is None else attribute_argument(axis, "axis")
    _check_depth(depth)
    length = number_argument(depth, "depth")
    check_types(_one_hot_row, (on, off, numbers), name)
    check_scalar(depth, "depth")
    return run(_one_hot_row, (on, off, numbers), length, place, name=name)  # type: ignore[no-any-return]


def _check_depth(depth: Any) -> None:
    dtype = dtype_of(depth)
    if dtype is None or dtype is int32:
        return
    if thread.state.graph is None:
        raise ValueError(
            f"Tensor conversion requested dtype int32 for Tensor with dtype {dtype.name}: {depth!r}"
        )
    raise TypeError(
        f"Input 'depth' of 'OneHot' Op has type {dtype.name} that does not match expected type of int32."
    )


def _is_nothing(value: Any) -> bool:
    return isinstance(value, list | tuple) and not value


def _sequence_mask_fault(lengths: Array, limit: int | None) -> str | None:
    return None if limit is None or limit >= 0 else f"maxlen must be >= 0, but got {limit}"


def _sequence_mask(lengths: Array, limit: int | None) -> Array:
    longest = math.ceil(lengths.max(initial=0)) if limit is None else limit
    return np.less(np.arange(longest, dtype=lengths.dtype), lengths[..., np.newaxis])


def _sequence_mask_shape(c: Inference, limit: Any) -> list[Output]:
    dims, count = c.shape(), number(limit)
    if count is not None and count < 0:
        c.refuse(f"maxlen must be >= 0, but got {count}")
    return c.one(None if dims is None else (*dims, count), bool_)


_sequence_mask_row = operation(
    "SequenceMask",
    _sequence_mask,
    shape=_sequence_mask_shape,
    fault=_sequence_mask_fault,
    takes=REALS.__contains__,
)


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = bool_, name: str | None = None
) -> EagerTensor:
    """For each length, that many times true and then false up to ``maxlen``. As ``tf.sequence_mask``.

    Raises:
        ValueError: ``maxlen`` is no scalar.
    """
    tensor = to_tensor(lengths)
    if maxlen is not None:
        if getattr(maxlen, "shape", ()) != () or isinstance(maxlen, list | tuple):
            shape = tuple(to_tensor(maxlen)._array.shape)
            raise ValueError(
                f"Argument `maxlen` must be scalar for sequence_mask, received `maxlen` = {maxlen} with shape "
                f"'{shape}' instead"
            )
        # Its type is the one in which places are counted.
        tensor = cast(tensor, as_dtype(getattr(maxlen, "dtype", int32)))
    check_types(_range_row, (tensor,), name)
    if maxlen is not None:
        maxlen = number_argument(maxlen, "maxlen")
    return cast(run(_sequence_mask_row, (tensor,), maxlen, name=name), dtype)


__all__ = ["eye", "linspace", "one_hot", "range", "sequence_mask"]
