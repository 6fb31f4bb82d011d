"""Reductions: sums, means, products, extremes and truth over axes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from allotment.tf.ops.arguments.axes import Axes, axes_argument, axes_fault, check_whole
from allotment.tf.ops.arguments.scalars import flag_argument
from allotment.tf.ops.arrays import Array, as_array, in_single, is_host, quotient
from allotment.tf.ops.convert import to_fixed_type, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import reduced
from allotment.tf.ops.reduction.folding import multiply_folded, reduce_along, reduce_folded
from allotment.tf.ops.table import Operation, operation
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.tensor import EagerTensor


def _fault(array: Array, axes: Axes, keepdims: bool) -> str | None:
    return axes_fault(array, axes)


def _reduction(op: str, function: Callable[..., Any], **fields: Any) -> Operation:
    return operation(op, function, shape=reduced, fault=_fault, **fields)


# Each function names the element type: NumPy would widen small integers.


def _sum(array: Array, axes: Axes, keepdims: bool) -> Any:
    # Halves are added up in single precision, but NumPy widens them on the way, a few at a time.
    total = reduce_folded(np.add, array, axes, _wide(array), keepdims)
    return total.astype(array.dtype) if total.dtype != array.dtype else total


def _wide(array: Array) -> np.dtype[Any]:
    return np.dtype(np.float32) if array.dtype == np.float16 else array.dtype


@in_single
def _prod(array: Array, axes: Axes, keepdims: bool) -> Any:
    return multiply_folded(array, axes, keepdims)


def _mean(array: Array, axes: Axes, keepdims: bool) -> Any:
    if array.dtype.kind in "iu":
        # Sums are 64 bits wide, or the mean of a picture would wrap around.
        total = as_array(reduce_folded(np.add, array, axes, f"{array.dtype.kind}8", keepdims))
        return quotient(total, max(_share(array, total), 1)).astype(array.dtype, copy=False)
    total = as_array(reduce_folded(np.add, array, axes, _wide(array), keepdims))
    np.true_divide(total, _share(array, total), out=total)
    return total.astype(array.dtype, copy=False)


def _share(array: Array, total: Array) -> int:
    """Return the number of elements that are reduced to one."""
    return array.size // total.size if total.size else 1


def _truth(ufunc: np.ufunc) -> Callable[[Array, Axes, bool], Any]:
    """Return the function of a row that reduces truth values by a ufunc."""

    def function(array: Array, axes: Axes, keepdims: bool) -> Any:
        return reduce_along(ufunc, array, axes, None, keepdims)

    return function


def _extreme(ufunc: np.ufunc, sign: int) -> Callable[[Array, Axes, bool], Any]:
    """Return the function of a row that reduces to the largest or the smallest element."""

    def function(array: Array, axes: Axes, keepdims: bool) -> Any:
        return reduce_folded(ufunc, array, axes, None, keepdims, initial=_bound(array, sign))

    return function


def _bound(array: Array, sign: int) -> Any:
    """Return the extreme of an array without elements: the smallest or the largest value of its type."""
    if array.dtype.kind == "f":
        return sign * np.inf
    limits = np.iinfo(array.dtype)
    return limits.max if sign > 0 else limits.min


def _norm(array: Array, axes: Axes, keepdims: bool) -> Any:
    is_wide = array.dtype.kind == "f" and array.dtype != np.float16
    if is_wide and (axes is None or len(axes) == array.ndim):
        # Without an array of the squares.
        flat = array.reshape(-1)
        return np.sqrt(np.dot(flat, flat)).reshape((1,) * array.ndim if keepdims else ())
    if is_wide and is_host(array) and axes is not None and len(axes) == 1 and axes[0] in (-1, array.ndim - 1):
        # The same for the last axis.
        norm = np.sqrt(np.vecdot(array, array))
        return np.expand_dims(norm, -1) if keepdims else norm
    # Squares are of the type of the elements, as TensorFlow's: integers wrap around, halves soon are infinite.
    squares = np.square(np.abs(array) if array.dtype.kind == "c" else array)
    total = as_array(reduce_folded(np.add, squares, axes, _wide(squares), keepdims))
    norm = np.sqrt(total, dtype=np.float64) if array.dtype.kind in "iu" else np.sqrt(total)
    return norm.astype(array.dtype, copy=False)


_sum_row = _reduction("Sum", _sum)
_prod_row = _reduction("Prod", _prod)
_mean_row = _reduction("Mean", _mean)
_max_row = _reduction("Max", _extreme(np.maximum, -1))
_min_row = _reduction("Min", _extreme(np.minimum, 1))
_norm_row = _reduction("EuclideanNorm", _norm)
_any_row = _reduction("Any", _truth(np.logical_or))
_all_row = _reduction("All", _truth(np.logical_and))


def _reduce(row: Operation, tensor: Any, axis: Any, keepdims: Any, name: str | None) -> EagerTensor:
    kept = keepdims is not None and flag_argument(keepdims, "keepdims")
    check_whole(row.name, "Tidx", axis, name)
    return run(row, (to_tensor(tensor),), axes_argument(axis), kept, name=name)  # type: ignore[no-any-return]


def reduce_sum(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> EagerTensor:
    """Add the elements along axes, all of them without ``axis``. As ``tf.reduce_sum``.

    The element type stays, and integers wrap around. With ``keepdims`` the axes stay, with length 1.

    Raises:
        InvalidArgumentError: The tensor has no such axis, or it is named twice.
    """
    return _reduce(_sum_row, input_tensor, axis, keepdims, name)


def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> EagerTensor:
    """The mean along axes; of integers a whole number, cut towards zero. As ``tf.reduce_mean``."""
    return _reduce(_mean_row, input_tensor, axis, keepdims, name)


def reduce_prod(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> EagerTensor:
    """Multiply the elements along axes. As ``tf.reduce_prod``."""
    return _reduce(_prod_row, input_tensor, axis, keepdims, name)


def reduce_max(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> EagerTensor:
    """The largest element along axes, of none the smallest there could be. As ``tf.reduce_max``."""
    return _reduce(_max_row, input_tensor, axis, keepdims, name)


def reduce_min(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> EagerTensor:
    """The smallest element along axes, of none the largest there could be. As ``tf.reduce_min``."""
    return _reduce(_min_row, input_tensor, axis, keepdims, name)


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> EagerTensor:
    """The square root of the sum of squares along axes. As ``tf.math.reduce_euclidean_norm``."""
    return _reduce(_norm_row, input_tensor, axis, keepdims, name)


def reduce_any(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> EagerTensor:
    """Whether any element along axes is true. As ``tf.reduce_any``."""
    return _reduce_truths(_any_row, input_tensor, axis, keepdims, name)


def reduce_all(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> EagerTensor:
    """Whether all elements along axes are true. As ``tf.reduce_all``."""
    return _reduce_truths(_all_row, input_tensor, axis, keepdims, name)


def _reduce_truths(row: Operation, tensor: Any, axis: Any, keepdims: Any, name: str | None) -> EagerTensor:
    (truths,) = to_fixed_type(bool_, tensor, plain=not isinstance(axis, list | tuple | str | np.generic))
    return _reduce(row, truths, axis, keepdims, name)


__all__ = [
    "reduce_all",
    "reduce_any",
    "reduce_euclidean_norm",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
]
