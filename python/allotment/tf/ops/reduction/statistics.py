"""Reductions made of several operations: variance, norms, counts, and sums of exponentials."""

from typing import Any

import numpy as np

from allotment.tf.ops.arguments.axes import axes_argument
from allotment.tf.ops.arguments.scalars import flag_argument, float_argument
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.array.layout import expand_dims, reshape, squeeze, transpose
from allotment.tf.ops.array.shapes import rank as number_of_axes
from allotment.tf.ops.array.shapes import shape
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.indexing.partition import invert_permutation
from allotment.tf.ops.indexing.scattering import tensor_scatter_nd_update
from allotment.tf.ops.indexing.sorting import argsort
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.linalg.factor import svd
from allotment.tf.ops.math.arithmetic import abs as absolute
from allotment.tf.ops.math.arithmetic import add, maximum, multiply, square, subtract
from allotment.tf.ops.math.arithmetic import pow as power
from allotment.tf.ops.math.comparison import is_finite, not_equal
from allotment.tf.ops.math.complex_numbers import complex as complex_of
from allotment.tf.ops.math.complex_numbers import conj, imag, real
from allotment.tf.ops.math.division import floormod
from allotment.tf.ops.math.real import exp, log, rsqrt, sqrt
from allotment.tf.ops.math.sequences import range as range_of
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.reduction.reduce import reduce_max, reduce_mean, reduce_sum
from allotment.tf.tensors.dtype import as_dtype, int32, int64, string
from allotment.tf.tensors.tensor import EagerTensor


@in_name_scope("ReduceLogSumExp")
def reduce_logsumexp(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> EagerTensor:
    """``log(sum(exp(x)))`` along axes, without overflow on the way. As ``tf.reduce_logsumexp``."""
    tensor = to_tensor(input_tensor)
    largest = reduce_max(tensor, axis, keepdims=True)
    # An infinite maximum would make a NaN of the difference.
    largest = where(is_finite(largest), largest, zeros_like(largest))
    result = log(reduce_sum(exp(subtract(tensor, largest)), axis, keepdims))
    if not flag_argument(keepdims, "keepdims"):
        known = result.shape.is_fully_defined()
        largest = reshape(largest, result.shape if known else shape(result))
    return add(result, largest, name)


@in_name_scope("reduce_variance", None)
def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> EagerTensor:
    """The mean square distance from the mean along axes. As ``tf.math.reduce_variance``.

    Raises:
        TypeError: The tensor has integers.
    """
    tensor = to_tensor(input_tensor)
    mean = reduce_mean(tensor, axis, keepdims=True)
    if tensor._dtype.is_integer:
        raise TypeError(f"Input must be either real or complex. Received integer type {tensor._dtype}.")
    distance = subtract(tensor, mean)
    if distance._dtype.is_complex:
        distance = absolute(distance)
    return reduce_mean(square(distance), axis, keepdims, name)


@in_name_scope("reduce_std", None)
def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> EagerTensor:
    """The square root of ``reduce_variance``. As ``tf.math.reduce_std``."""
    return sqrt(reduce_variance(input_tensor, axis, keepdims), name)


@in_name_scope("count_nonzero", None)
def count_nonzero(
    input: Any,  # noqa: A002 - TensorFlow's name
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = int64,
    name: str | None = None,
) -> EagerTensor:
    """Count the elements along axes that are not zero: not false, not the empty text. As ``tf.math.count_nonzero``."""
    tensor = to_tensor(input)
    zero = to_tensor("" if tensor._dtype is string else np.zeros((), tensor._dtype.numpy))
    count = reduce_sum(cast(not_equal(tensor, zero), int64), axis, False if keepdims is None else keepdims)
    return cast(count, as_dtype(dtype), name=name)


@in_name_scope("l2_normalize")
def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> EagerTensor:
    """Divide by the Euclidean norm along axes, or by the root of ``epsilon`` if that is more.

    As ``tf.math.l2_normalize``. ``dim`` is the old name of ``axis``.

    Raises:
        ValueError: Both names are used.
    """
    if dim is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'dim' and 'axis'.")
        axis = dim
    tensor = to_tensor(x)
    if not tensor._dtype.is_complex:
        return multiply(tensor, _inverse_norm(square(tensor), axis, epsilon), name)
    # By parts, whose squares have a second derivative at zero; a size has none.
    parts = real(tensor), imag(tensor)
    inverse = _inverse_norm(add(square(parts[0]), square(parts[1])), axis, epsilon)
    return complex_of(multiply(parts[0], inverse), multiply(parts[1], inverse), name)


def _inverse_norm(squares: EagerTensor, axis: Any, epsilon: float) -> EagerTensor:
    return rsqrt(maximum(reduce_sum(squares, axis, keepdims=True), epsilon))


@in_name_scope("norm", None)
def norm(
    tensor: Any,
    ord: Any = "euclidean",  # noqa: A002 - TensorFlow's name
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
) -> EagerTensor:
    """The norm of vectors (one axis), matrices (two axes), or of all elements. As ``tf.norm``.

    Args:
        tensor: Floats or complex numbers.
        ord: ``"euclidean"`` (``"fro"`` for matrices), 1, 2, infinity, or for vectors any positive number.
        axis: One axis, a pair of axes, or ``None`` for all elements as one vector.
        keepdims: Whether the axes stay, with length 1.
        name: Only looked at in error texts.

    Raises:
        ValueError: There is no such norm, or no norm of so many axes.
    """
    tensor = to_tensor(tensor)
    matrix = isinstance(axis, list | tuple)
    _check_norm(ord, axis, matrix)
    axes = axes_argument(axis)
    result = (_matrix_norm if matrix else _vector_norm)(tensor, ord, axes)
    return result if flag_argument(keepdims, "keepdims") else squeeze(result, axis=axes)


def _check_norm(ord: Any, axis: Any, matrix: bool) -> None:  # noqa: A002
    axes = axis if matrix else [axis]
    is_known = axis is None or all(isinstance(each, int) for each in axes)
    if not is_known or (matrix and (len(axes) != 2 or axes[0] == axes[1])):
        raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
    if matrix:
        supported = ["euclidean", "fro", 1, 2, np.inf]
        if not isinstance(ord, str | int | float) or ord not in supported:
            raise ValueError(f"'ord' must be a supported matrix norm in {supported}, got {ord}")
    elif not (ord > 0 if isinstance(ord, int | float) else isinstance(ord, str) and ord == "euclidean"):
        raise ValueError(f"'ord' must be a supported vector norm, got {ord}")


def _vector_norm(tensor: EagerTensor, ord: Any, axes: Any) -> EagerTensor:  # noqa: A002
    if ord in ("euclidean", 2):
        # Of complex numbers a complex one, as TensorFlow's.
        return sqrt(reduce_sum(multiply(tensor, conj(tensor)), axes, keepdims=True))
    sizes = absolute(tensor)
    if ord == 1:
        return reduce_sum(sizes, axes, keepdims=True)
    if ord == np.inf:
        return reduce_max(sizes, axes, keepdims=True)
    return power(reduce_sum(power(sizes, float_argument(ord, "ord")), axes, keepdims=True), 1.0 / ord)


def _matrix_norm(tensor: EagerTensor, ord: Any, axes: Any) -> EagerTensor:  # noqa: A002
    if ord in ("euclidean", "fro"):
        return _vector_norm(tensor, "euclidean", axes)
    if ord == 2:
        return _spectral_norm(tensor, axes)
    rows, columns = axes
    inner, outer = (rows, columns) if ord == 1 else (columns, rows)
    return reduce_max(reduce_sum(absolute(tensor), inner, keepdims=True), outer, keepdims=True)


def _spectral_norm(tensor: EagerTensor, axes: tuple[int, ...]) -> EagerTensor:
    """The largest singular value, with the axes of the matrices brought to the end and back."""
    rank = rank_of(tensor)
    order, back = _order_of_unknown(tensor, axes) if rank is None else _order(rank, axes)
    values = svd(transpose(tensor, order), compute_uv=False)
    largest = expand_dims(reduce_max(values, -1, keepdims=True), -1)
    return transpose(largest, back)


def _order(rank: int, axes: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The order that brings two axes to the end, and the one back."""
    # Axes that a scalar lacks are left to the transposition.
    last = tuple(axis % rank for axis in axes) if rank else axes
    order = [axis for axis in range(rank) if axis not in last] + list(last)
    return order, np.argsort(order).tolist()


def _order_of_unknown(tensor: EagerTensor, axes: tuple[int, ...]) -> tuple[EagerTensor, EagerTensor]:
    """The same in a graph that does not know the rank."""
    count = number_of_axes(tensor)
    places = expand_dims(floormod(to_tensor(axes, int32), count), -1)
    order = argsort(tensor_scatter_nd_update(range_of(count) * 0, places, [1, 2]), stable=True)
    return order, invert_permutation(order)


__all__ = [
    "count_nonzero",
    "l2_normalize",
    "norm",
    "reduce_logsumexp",
    "reduce_std",
    "reduce_variance",
]
