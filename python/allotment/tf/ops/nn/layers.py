"""Operations of neural networks' layers: biases, dropout, normalisation, embeddings."""

import numbers
from typing import Any

import numpy as np

from allotment.tf.ops.arguments.axes import axes_argument
from allotment.tf.ops.arguments.integers import axis_of, number_argument
from allotment.tf.ops.arguments.scalars import flag_argument, float_argument
from allotment.tf.ops.arguments.shapes import shape_argument
from allotment.tf.ops.array.array import cast, get_static_value, is_tensor, stop_gradient
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import squeeze
from allotment.tf.ops.array.shapes import rank as number_of_axes
from allotment.tf.ops.array.shapes import shape_of, size_of
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.deferred import is_known, listed
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.gathering import gather
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.math.arithmetic import add, multiply, negative, squared_difference, subtract
from allotment.tf.ops.math.comparison import greater_equal
from allotment.tf.ops.math.division import realdiv
from allotment.tf.ops.math.real import rsqrt
from allotment.tf.ops.math.sequences import range as range_of
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.random.random import uniform
from allotment.tf.ops.reduction.norms import clip_by_norm
from allotment.tf.ops.reduction.reduce import reduce_mean
from allotment.tf.ops.reduction.statistics import count_nonzero
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.dtype import float16, float32
from allotment.tf.tensors.tensor import EagerTensor


def _bias_axis(data_format: Any) -> int:
    if data_format is not None and not str(data_format).startswith("N"):
        raise ValueError(
            f"`data_format` must be of the form `N...C` or `NC...`. Received: data_format={data_format}"
        )
    return 1 if data_format is not None and str(data_format).startswith("NC") else -1


def _add_bias(value: Array, bias: Array, axis: int) -> Any:
    after = value.ndim - 1 - axis_of(axis, value.ndim)
    return np.add(value, bias.reshape(-1, *[1] * after))


def _bias_fault(value: Array, bias: Array, axis: int) -> str | None:
    if value.ndim < 2:
        return f"Input tensor must be at least 2D: {dims(value)}"
    if bias.ndim != 1:
        return f"Biases must be 1D: {dims(bias)}"
    if value.shape[axis] != len(bias):
        return (
            "Must provide as many biases as the last dimension of the input tensor: "
            f"{dims(bias)} vs. {dims(value)}"
        )
    return None


def _bias_shape(c: Inference, axis: int) -> list[Output]:
    dims, (biases,) = c.at_least(0, 3 if axis == 1 else 2), c.ranked(1, 1)
    if dims is None:
        return c.one(None)
    place = axis % len(dims)
    return c.one((*dims[:place], c.same(dims[place], biases), *dims[place + 1 :]))


_bias_row = operation("BiasAdd", _add_bias, shape=_bias_shape, fault=_bias_fault)


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> EagerTensor:
    """Add a vector to the channels: the last axis, the second for ``"NC..."``. As ``tf.nn.bias_add``.

    Raises:
        InvalidArgumentError: There are not as many biases as channels.
        ValueError: Another data format.
    """
    axis = _bias_axis(data_format)
    value = to_tensor(value)
    return run(_bias_row, (value, to_tensor(bias, like=value._dtype)), axis, name=name)  # type: ignore[no-any-return]


@in_name_scope("dropout", None)
def dropout(
    x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, name: str | None = None
) -> EagerTensor:
    """Set a share of the elements to zero by chance, and scale the others up to keep the mean.

    As ``tf.nn.dropout``.

    Args:
        x: Floats.
        rate: The share, from 0 to below 1; with 0 ``x`` is returned as it is. In a graph it may be fed.
        noise_shape: A shape that broadcasts to that of ``x``: elements that share a place share their fate.
        seed: Of the random numbers.
        name: Only looked at in error texts.

    Raises:
        ValueError: The rate is not in that interval, no number or of another type than ``x``, or ``x`` has no floats.
    """
    tensor = to_tensor(x)
    dtype = tensor._dtype
    if not dtype.is_floating:
        raise ValueError(
            f"`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x.dtype={dtype!r}"
        )
    if not is_tensor(rate) and not isinstance(rate, numbers.Real):
        raise ValueError(f"`rate` must be a scalar or scalar tensor. Received: rate={rate}")
    if is_tensor(rate) and rate.dtype.base_dtype != dtype:
        raise ValueError(
            f"`x.dtype` must be compatible with `rate.dtype`. Received: x.dtype={dtype!r} and "
            f"rate.dtype={rate.dtype!r}"
        )
    shape = shape_of(tensor) if noise_shape is None else _noise_shape(tensor, noise_shape)
    if is_tensor(rate) and get_static_value(rate) is None:
        fed = cast(rate, dtype)
        chances = greater_equal(uniform(shape, dtype=dtype, seed=seed), fed)
        return where(chances, realdiv(tensor, 1.0 - fed), 0.0, name)
    share = float_argument(rate, "rate")
    if not 0 <= share < 1:
        raise ValueError(
            f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}"
        )
    if share == 0:
        return tensor
    kept = greater_equal(uniform(shape, dtype=dtype, seed=seed), share)
    return where(kept, multiply(tensor, 1 / (1 - share)), 0.0, name)


def _noise_shape(x: EagerTensor, noise_shape: Any) -> tuple[int, ...]:
    """The shape of the chances; an axis that is ``None`` or -1 is as long as that of ``x``."""
    if isinstance(noise_shape, list | tuple):
        noise_shape = [-1 if length is None else length for length in noise_shape]
    lengths: Any = shape_argument(noise_shape)
    if is_known(lengths) and -1 in lengths and len(lengths) == rank_of(x):
        return tuple(
            whole if length == -1 else length for length, whole in zip(lengths, x._array.shape, strict=True)
        )
    return listed(lengths)  # type: ignore[no-any-return]


@in_name_scope("moments", None)
def moments(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[EagerTensor, EagerTensor]:
    """The mean and the variance along axes. As ``tf.nn.moments``; ``shift`` has no effect there either.

    Halves are computed in single precision.
    """
    given = to_tensor(x)
    wide = cast(given, float32) if given._dtype is float16 else given
    mean = reduce_mean(wide, axes, keepdims=True)
    variance = reduce_mean(squared_difference(wide, stop_gradient(mean)), axes, keepdims=True)
    if not flag_argument(keepdims, "keepdims"):
        numbers = axes_argument(axes)
        mean, variance = squeeze(mean, numbers), squeeze(variance, numbers)
    return cast(mean, given._dtype), cast(variance, given._dtype)


@in_name_scope("batchnorm", "add_1")
def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: str | None = None,
) -> EagerTensor:
    """``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``. As ``tf.nn.batch_normalization``.

    ``offset`` and ``scale`` may be ``None``.
    """
    x = to_tensor(x)
    factor = rsqrt(add(to_tensor(variance, like=x._dtype), variance_epsilon))
    if scale is not None:
        factor = multiply(factor, scale)
    shift = multiply(mean, factor)
    shift = negative(shift) if offset is None else subtract(offset, shift)
    return add(multiply(x, cast(factor, x._dtype)), cast(shift, x._dtype), name)


@in_name_scope("embedding_lookup", "Identity")
def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> EagerTensor:
    """Pick rows by number. As ``tf.nn.embedding_lookup``.

    Args:
        params: A table, or a list of tables whose rows are numbered one after the other.
        ids: Numbers of rows.
        max_norm: Shrink rows with a larger Euclidean norm to this one.
        name: Only looked at in error texts.

    Raises:
        InvalidArgumentError: There is no such row.
        ValueError: There is no table.
    """
    tables = list(params) if isinstance(params, list | tuple) else [params]
    if not tables:
        raise ValueError("params should not be empty.")
    rows = gather(tables[0] if len(tables) == 1 else concat(tables, 0), ids, name=name)
    if max_norm is None:
        return rows
    first, rank = rank_of(to_tensor(ids)), rank_of(rows)
    if first is None or rank is None:
        axes: Any = range_of(number_of_axes(to_tensor(ids)), number_of_axes(rows))
    else:
        axes = list(range(first, rank))
    return clip_by_norm(rows, max_norm, axes=axes)


def _in_top_k(predictions: Array, targets: Array, k: int) -> Any:
    classes = predictions.shape[1]
    known = np.logical_and(np.greater_equal(targets, 0), np.less(targets, classes))
    safe = np.where(known, targets, 0).astype(np.intp)
    if classes == 0:
        return known
    own = np.take_along_axis(predictions, safe[:, None], 1)
    # Rows with something that is not finite have no order.
    among = np.logical_and(np.isfinite(predictions).all(1), known)
    larger = np.zeros(len(targets), np.intp, like=targets)
    rows, start, columns = np.flatnonzero(among), 0, 64
    # A row is looked at until there are enough larger ones, a few columns more each time.
    while start < classes and rows.size:
        part = predictions[rows, start : start + columns]
        larger[rows] += np.count_nonzero(np.greater(part, own[rows]), 1)
        rows, start, columns = rows[larger[rows] < k], start + columns, 2 * columns
    return np.logical_and(among, np.less(larger, k))


def _in_top_k_fault(predictions: Array, targets: Array, k: int) -> str | None:
    if predictions.ndim != 2:
        return "predictions must be 2-dimensional"
    if targets.ndim != 1:
        return "targets must be 1-dimensional"
    if len(predictions) != len(targets):
        return (
            f"First dimension of predictions {len(predictions)} must match length of targets {len(targets)}"
        )
    return None


def _in_top_k_shape(c: Inference, k: Any) -> list[Output]:
    (rows, _), (targets,) = c.ranked(0, 2), c.ranked(1, 1)
    return c.one((c.same(rows, targets),), bool_)


_in_top_k_row = operation("InTopKV2", _in_top_k, shape=_in_top_k_shape, fault=_in_top_k_fault)


def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> EagerTensor:
    """Whether the prediction of each row's target is among the row's ``k`` largest. As ``tf.math.in_top_k``.

    Equal predictions do not push each other out.

    Args:
        targets: int32 or int64, one a row; one that is no class is in no row.
        predictions: float32 of rank 2; of a row with one that is not finite, the answer is no.
        k: How many count.
        name: Only looked at in error texts.

    Raises:
        InvalidArgumentError: The shapes or types do not fit.
    """
    targets = to_tensor(targets)
    return run(_in_top_k_row, (to_tensor(predictions), targets), number_argument(k, "k"), name=name)  # type: ignore[no-any-return]


@in_name_scope("zero_fraction", "fraction")
def zero_fraction(value: Any, name: str | None = None) -> EagerTensor:
    """The share of elements that are zero, as float32; a NaN of none. As ``tf.nn.zero_fraction``."""
    value = to_tensor(value)
    size = cast(to_tensor(size_of(value)), float32)
    nonzero = cast(count_nonzero(value), float32)
    return realdiv(subtract(size, nonzero), size, name)


__all__ = [
    "batch_normalization",
    "bias_add",
    "dropout",
    "embedding_lookup",
    "in_top_k",
    "moments",
    "zero_fraction",
]
