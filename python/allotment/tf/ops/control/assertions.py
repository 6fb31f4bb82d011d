"""Assertions about values: they raise, or return nothing. Those about shapes and types are in ``shape_assertions``."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Final

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.array.array import is_tensor
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.control.assert_op import Assert, called, decided, elements, failed, shown_count
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math import comparison
from allotment.tf.ops.math.arithmetic import abs as absolute
from allotment.tf.ops.math.arithmetic import add, multiply, subtract
from allotment.tf.ops.public import public
from allotment.tf.ops.reduction.reduce import reduce_all
from allotment.tf.tensors.tensor import EagerTensor


def _different(symbol: str, x: Array, y: Array, shown: int, held: Array) -> list[str]:
    """Return TensorFlow's lines about two tensors for which a relation does not hold."""
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
    scope: str,
    x: Any,
    y: Any,
    data: Any,
    summarize: int | None,
    message: str | None,
) -> Any:
    graph = thread.state.graph
    if graph is not None:
        with graph.name_scope(scope), graph._recording.naming({id(x): "x", id(y): "y"}):
            return _check_in_graph(relation, symbol, to_tensor(x), to_tensor(y), data, summarize, message)
    # Each by itself, as TensorFlow does: a Python number takes no type from the tensor beside it.
    x, y = to_tensor(x), to_tensor(y)
    held = relation(x, y)
    if reduce_all(held):
        return None
    shown = shown_count(summarize)
    if data is None:
        data = _different(symbol, x._on_host(), y._on_host(), shown, held._on_host())
    values = [each._on_host() if is_tensor(each) else each for each in data]
    lines = [str(elements(each, shown)) if isinstance(each, np.ndarray) else str(each) for each in values]
    raise failed("\n".join(lines if message is None else [message, *lines]))


def _check_in_graph(
    relation: Callable[..., EagerTensor],
    symbol: str,
    x: Any,
    y: Any,
    data: Sequence[Any] | None,
    summarize: int | None,
    message: str | None,
) -> Any:
    if data is None:
        data = [
            f"Condition x {symbol} y did not hold element-wise:",
            f"x ({x.name}) = ",
            x,
            f"y ({y.name}) = ",
            y,
        ]
    if message is not None:
        data = [message, *data]
    return decided(reduce_all(relation(x, y)), data, summarize, x, y)


#: The assertions in TensorFlow 1's form, which may be given what errors show, by name.
WITH_DATA: Final[dict[str, Callable[..., Any]]] = {}


def _both_forms(check: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """Keep the form with data; returns the one that has none."""
    WITH_DATA[name] = public(check, name, doc)

    def call(
        x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> Any:
        return check(x, y, None, summarize, message, name)

    return public(call, name, doc)


def _comparing(relation: Callable[..., EagerTensor], symbol: str, op: str, what: str) -> Callable[..., Any]:
    def check(
        x: Any,
        y: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Any:
        return _check(relation, symbol, name or op, x, y, data, summarize, message)

    doc = f"""Check that {what}. As ``tf.debugging.{op}``.

    In a graph: return an operation that checks when it is run.

    Raises:
        InvalidArgumentError: They are not; the text begins with ``message`` and shows ``summarize`` elements.
    """
    return _both_forms(check, op, doc)


assert_equal = _comparing(comparison.equal, "==", "assert_equal", "all elements are equal")
assert_greater = _comparing(comparison.greater, ">", "assert_greater", "all elements of ``x`` are larger")
assert_greater_equal = _comparing(
    comparison.greater_equal, ">=", "assert_greater_equal", "no element of ``x`` is smaller"
)
assert_less = _comparing(comparison.less, "<", "assert_less", "all elements of ``x`` are smaller")
assert_less_equal = _comparing(
    comparison.less_equal, "<=", "assert_less_equal", "no element of ``x`` is larger"
)
_none_equal = _comparing(comparison.not_equal, "!=", "assert_none_equal", "no elements are equal")


def assert_none_equal(
    x: Any, y: Any, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Any:
    """Check that no elements are equal. As ``tf.debugging.assert_none_equal``.

    In a graph: return an operation that checks when it is run.

    Raises:
        InvalidArgumentError: Some are.
    """
    return _none_equal(x, y, message, summarize, name)


def _signed(
    relation: Callable[..., EagerTensor], symbol: str, op: str, inner: str, what: str, end: str = "\n"
) -> Callable[..., Any]:
    def check(
        x: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Any:
        graph = thread.state.graph
        with nullcontext() if graph is None else graph.name_scope(name or op):
            x = to_tensor(x)
            if data is None:
                data = [f"{message}.  " if message else "", *_shown(symbol, x, end)]
            return _check(relation, symbol, inner, x, to_tensor(0, x._dtype), data, summarize, None)

    def call(
        x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> Any:
        return check(x, None, summarize, message, name)

    doc = f"""Check that all elements are {what}. As ``tf.debugging.{op}``.

    In a graph: return an operation that checks when it is run.

    Raises:
        InvalidArgumentError: One is not.
    """
    WITH_DATA[op] = public(check, op, doc)
    return public(call, op, doc)


def _shown(symbol: str, x: Any, end: str) -> list[Any]:
    """Return what an error prints of a tensor that is compared with zero."""
    condition = f"Condition x {symbol} 0 did not hold element-wise:"
    # TensorFlow has them in one where it forgot to end the line.
    first = [condition] if end and thread.state.graph is not None else []
    start = "" if first else condition + end
    return [*first, f"{start}x ({called(x)}) = ", x]


assert_positive = _signed(comparison.greater, ">", "assert_positive", "assert_less", "above zero")
assert_negative = _signed(comparison.less, "<", "assert_negative", "assert_less", "below zero")
assert_non_negative = _signed(
    comparison.greater_equal, ">=", "assert_non_negative", "assert_less_equal", "not below zero"
)
# TensorFlow's own text has no new line here.
assert_non_positive = _signed(
    comparison.less_equal, "<=", "assert_non_positive", "assert_less_equal", "not above zero", end=""
)


def _near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Any:
    graph = thread.state.graph
    with nullcontext() if graph is None else graph.name_scope(name or "assert_near"):
        x = to_tensor(x)
        y = to_tensor(y, x._dtype)
        try:
            default = 10 * np.finfo(x._dtype.numpy).eps
        except ValueError as error:
            error.__traceback__ = None
            raise ValueError(str(error)) from None
        real = x._dtype.numpy.type(0).real.dtype
        rtol = constant(np.array(default if rtol is None else rtol, real), name="rtol")
        atol = constant(np.array(default if atol is None else atol, real), name="atol")
        limit = add(atol, multiply(rtol, absolute(y)))
        condition = reduce_all(comparison.less(absolute(subtract(x, y)), limit))
        if data is None:
            data = [
                f"{message}.  " if message else "",
                f"x and y not equal to tolerance rtol = {rtol!s}, atol = {atol!s}",
                f"x ({called(x)}) = ",
                x,
                f"y ({called(y)}) = ",
                y,
            ]
        return Assert(condition, data, summarize)


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Any:
    """Check that ``abs(x - y) < atol + rtol * abs(y)``. As ``tf.debugging.assert_near``.

    Without tolerances each is ten times the distance from one to the next float. In a graph: return an operation
    that checks when it is run.

    Raises:
        InvalidArgumentError: Two elements are further apart.
        ValueError: The elements are integers.
    """
    return _near(x, y, rtol, atol, None, summarize, message, name)


WITH_DATA["assert_near"] = public(_near, "assert_near", assert_near.__doc__ or "")

__all__ = [
    "WITH_DATA",
    "Assert",
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
]
