"""Running sums and products along an axis."""

from collections.abc import Callable
from typing import Any

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.arguments.integers import scalar_argument
from allotment.tf.ops.arguments.scalars import attribute_flag
from allotment.tf.ops.arrays import Array, is_host
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import check_types_in_graph, run
from allotment.tf.ops.inference.common import unchanged
from allotment.tf.ops.table import Operation, operation
from allotment.tf.tensors.tensor import EagerTensor


def _scan(ufunc: np.ufunc, start: float) -> Callable[[Array, int, bool, bool], Array]:
    def function(array: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
        result = np.empty(array.shape, array.dtype, like=array)
        # Views: a scan from the end is one from the start of the reversed array.
        source, target = np.moveaxis(array, axis, 0), np.moveaxis(result, axis, 0)
        if reverse:
            source, target = source[::-1], target[::-1]
        if not exclusive:
            _accumulate(ufunc, source, target)
        elif len(target):
            target[0] = start
            _accumulate(ufunc, source[:-1], target[1:])
        return result

    return function


def _accumulate(ufunc: np.ufunc, source: Array, target: Array) -> None:
    """Accumulate along the first axis into an array."""
    if is_host(source):
        ufunc.accumulate(source, 0, target.dtype, out=target)
    elif ufunc is np.logaddexp:
        # CuPy's ufuncs accumulate sums and products only. Each step doubles how far an element looks back.
        target[...] = source
        reach = 1
        while reach < len(target):
            target[reach:] = ufunc(target[reach:], target[:-reach])
            reach *= 2
    else:
        target[...] = ufunc.accumulate(source, 0, target.dtype)


def _fault(array: Array, axis: int, exclusive: bool, reverse: bool) -> str | None:
    if not -array.ndim <= axis < array.ndim:
        return f"ScanOp: Expected scan axis in the range [{-array.ndim}, {array.ndim}), but got {axis}"
    return None


_cumsum = operation("Cumsum", _scan(np.add, 0), shape=unchanged, fault=_fault)
_cumprod = operation("Cumprod", _scan(np.multiply, 1), shape=unchanged, fault=_fault)

_cumulative_logsumexp = operation(
    "CumulativeLogsumexp", _scan(np.logaddexp, -np.inf), shape=unchanged, fault=_fault
)


def cumsum(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> EagerTensor:
    """The sum of all elements so far along an axis. As ``tf.cumsum``.

    Args:
        x: Numbers.
        axis: One axis.
        exclusive: Leave out the element itself: the first result is zero.
        reverse: Start at the end.
        name: Only looked at in error texts.

    Raises:
        InvalidArgumentError: The tensor has no such axis.
    """
    return _run(_cumsum, x, axis, exclusive, reverse, name)


def cumprod(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> EagerTensor:
    """The product of all elements so far along an axis. As ``tf.math.cumprod``; see ``cumsum``."""
    return _run(_cumprod, x, axis, exclusive, reverse, name)


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> EagerTensor:
    """``log(sum(exp(x)))`` of all so far along an axis. As ``tf.math.cumulative_logsumexp``; see ``cumsum``."""
    return _run(_cumulative_logsumexp, x, axis, exclusive, reverse, name)


def _run(row: Operation, x: Any, axis: Any, exclusive: bool, reverse: bool, name: str | None) -> EagerTensor:
    flags = attribute_flag(exclusive, "exclusive"), attribute_flag(reverse, "reverse")
    x = to_tensor(x)
    if thread.state.graph is not None:
        # There the axis is looked at behind what it is of.
        check_types_in_graph(row, (x,))
    return run(row, (x,), scalar_argument(axis, "axis", in_kernel=True), *flags, name=name)  # type: ignore[no-any-return]


__all__ = ["cumprod", "cumsum", "cumulative_logsumexp"]
