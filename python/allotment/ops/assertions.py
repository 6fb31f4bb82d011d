"""Assertions about values: they raise, or return nothing. Those about shapes and types are in ``shape_assertions``."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from allotment import errors
from allotment.ops import comparison
from allotment.ops.arrays import Array
from allotment.ops.convert import to_pair, to_tensor
from allotment.ops.element_types import FLOATS, check_attribute
from allotment.ops.execute import run
from allotment.ops.math import abs as absolute
from allotment.ops.math import add, multiply, subtract
from allotment.ops.public import public
from allotment.ops.reduce import reduce_all
from allotment.ops.table import operation
from allotment.tensor import EagerTensor

#: How many elements an error shows unless it is told.
_SHOWN = 3


def _failed(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


def _count(summarize: int | None) -> int:
    # A negative number means everything.
    return _SHOWN if summarize is None else summarize if summarize >= 0 else 10**9


def _elements(value: Any, shown: int) -> list[str]:
    """The first elements of an array as texts."""
    flat = np.asarray(value).reshape(-1)
    return [*map(str, flat[:shown]), *(["..."] if flat.size > shown else [])]


def Assert(  # noqa: N802 - the name TensorFlow has
    condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> None:
    """Raise an error that shows values, unless a condition is true. As ``tf.debugging.Assert``.

    Raises:
        InvalidArgumentError: The condition is false.
    """
    if condition:
        return
    tensors = [to_tensor(value)._array for value in data]
    shown = _count(summarize)
    texts = (", ".join(_elements(each, shown)) for each in tensors)
    lines = "\n".join(texts)
    raise _failed(f"Expected '{condition!s}' to be true. Summarized data: {lines}")


def _different(symbol: str, x: Array, y: Array, shown: int, held: Array) -> list[str]:
    """What TensorFlow says of two tensors of which a relation does not hold."""
    lines = [f"Condition x {symbol} y did not hold."]
    if shown == 0:
        return lines
    if x.shape == y.shape and x.ndim:
        places = np.argwhere(~held)[:shown]
        lines += [f"Indices of first {len(places)} different values:", str(places)]
        lines += ["Corresponding x values:", str(x[~held][:shown])]
        lines += ["Corresponding y values:", str(y[~held][:shown])]
    for what, array in (("x", x), ("y", y)):
        flat = array.reshape(-1)[:shown]
        lines += [f"First {flat.size} elements of {what}:", str(flat)]
    return lines


def _check(
    relation: Callable[..., EagerTensor],
    symbol: str,
    x: Any,
    y: Any,
    message: str | None,
    summarize: int | None,
    data: list[Any] | None = None,
) -> None:
    # Each by itself, as TensorFlow does: a Python number takes no type from the tensor beside it.
    x, y = to_tensor(x), to_tensor(y)
    held = relation(x, y)
    if reduce_all(held):
        return
    shown = _count(summarize)
    if data is None:
        data = _different(symbol, x._array, y._array, shown, np.asarray(held._array))
    lines = [str(_elements(each, shown)) if isinstance(each, np.ndarray) else each for each in data]
    raise _failed("\n".join(lines if message is None else [message, *lines]))


def _comparing(
    relation: Callable[..., EagerTensor], symbol: str, name: str, what: str
) -> Callable[..., None]:
    def call(
        x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> None:
        _check(relation, symbol, x, y, message, summarize)

    doc = f"""Check that {what}. As ``tf.debugging.{name}``.

    Raises:
        InvalidArgumentError: They are not; the text begins with ``message`` and shows ``summarize`` elements.
    """
    public(call, name, doc)  # type: ignore[arg-type]
    return call


assert_equal = _comparing(comparison.equal, "==", "assert_equal", "all elements are equal")
assert_greater = _comparing(comparison.greater, ">", "assert_greater", "all elements of ``x`` are larger")
assert_greater_equal = _comparing(
    comparison.greater_equal, ">=", "assert_greater_equal", "no element of ``x`` is smaller"
)
assert_less = _comparing(comparison.less, "<", "assert_less", "all elements of ``x`` are smaller")
assert_less_equal = _comparing(
    comparison.less_equal, "<=", "assert_less_equal", "no element of ``x`` is larger"
)


def assert_none_equal(
    x: Any, y: Any, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Check that no elements are equal. As ``tf.debugging.assert_none_equal``.

    Raises:
        InvalidArgumentError: Some are.
    """
    _check(comparison.not_equal, "!=", x, y, message, summarize)


def _signed(
    relation: Callable[..., EagerTensor], symbol: str, name: str, what: str, end: str = "\n"
) -> Callable[..., None]:
    def call(
        x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> None:
        x = to_tensor(x)
        data = [
            f"{message}.  " if message else "",
            f"Condition x {symbol} 0 did not hold element-wise:{end}x (shape={x.shape} dtype={x.dtype.name}) = ",
            np.asarray(x._array),
        ]
        _check(relation, symbol, x, np.zeros((), x.dtype.numpy), None, summarize, data)

    doc = f"""Check that all elements are {what}. As ``tf.debugging.{name}``.

    Raises:
        InvalidArgumentError: One is not.
    """
    public(call, name, doc)  # type: ignore[arg-type]
    return call


assert_positive = _signed(comparison.greater, ">", "assert_positive", "above zero")
assert_negative = _signed(comparison.less, "<", "assert_negative", "below zero")
assert_non_negative = _signed(comparison.greater_equal, ">=", "assert_non_negative", "not below zero")
# TensorFlow's own text has no new line here.
assert_non_positive = _signed(comparison.less_equal, "<=", "assert_non_positive", "not above zero", end="")


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Check that ``abs(x - y) <= atol + rtol * abs(y)``. As ``tf.debugging.assert_near``.

    Without tolerances each is ten times the distance from one to the next float.

    Raises:
        InvalidArgumentError: Two elements are further apart.
        ValueError: The elements are integers.
    """
    x, y = to_pair(x, y)
    try:
        default = 10 * np.finfo(x._dtype.numpy).eps
    except ValueError as error:
        raise ValueError(str(error)) from None
    real = x._dtype.numpy.type(0).real.dtype
    rtol = to_tensor(np.array(default if rtol is None else rtol, real))
    atol = to_tensor(np.array(default if atol is None else atol, real))
    limit = add(atol, multiply(rtol, absolute(y)))
    condition = reduce_all(comparison.less_equal(absolute(subtract(x, y)), limit))
    data = [
        f"{message}.  " if message else "",
        f"x and y not equal to tolerance rtol = {rtol!s}, atol = {atol!s}",
        f"x (shape={x.shape} dtype={x.dtype.name}) = ",
        x,
        f"y (shape={y.shape} dtype={y.dtype.name}) = ",
        y,
    ]
    Assert(condition, data, summarize)


def _numerics_fault(array: Array, message: str) -> str | None:
    found = [what for what, test in (("Inf", np.isinf), ("NaN", np.isnan)) if test(array).any()]
    return f"{message} : Tensor had {' and '.join(found)} values" if found else None


def _same(array: Array, message: str) -> Array:
    return array


_check_numerics = operation("CheckNumerics", _same, fault=_numerics_fault, takes=FLOATS.__contains__)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> EagerTensor:
    """Return the tensor if all its elements are finite. As ``tf.debugging.check_numerics``.

    Raises:
        InvalidArgumentError: One is infinite or a NaN.
    """
    tensor = to_tensor(tensor)
    check_attribute("CheckNumerics", "T", tensor._dtype, FLOATS, name)
    return run(_check_numerics, (tensor,), message, name=name)  # type: ignore[no-any-return]


def assert_all_finite(x: Any, message: str, name: str | None = None) -> EagerTensor:
    """Return the tensor if all its elements are finite. As ``tf.debugging.assert_all_finite``."""
    return check_numerics(x, message, name)


__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "check_numerics",
]
