"""The random numbers themselves: functions that fill arrays from a generator of NumPy's."""

from typing import TYPE_CHECKING, Any

import numpy as np

from allotment.tf.ops.arrays import Array, owned
from allotment.tf.tensors.dtype import DType

if TYPE_CHECKING:
    Source = np.random.Generator
else:
    # NumPy loads its generators when they are first used, so that importing it is quick; so do we.
    Source = Any
Shape = tuple[int, ...]

#: Beyond this many standard deviations a truncated normal has no values.
_CUT = 2.0


def uniform(shape: Shape, dtype: DType, source: Source) -> Array:
    """Floats from 0 up to, but not including, 1."""
    if dtype.numpy == np.float16:
        # Whole numbers of steps: rounding a wider float could give 1.
        return source.integers(0, 2**11, shape, np.uint16).astype(np.float16) * np.float16(2.0**-11)
    return np.asarray(source.random(shape, dtype.numpy))


def normal(shape: Shape, dtype: DType, source: Source) -> Array:
    """Floats with mean 0 and standard deviation 1."""
    if dtype.numpy == np.float16:
        return np.asarray(source.standard_normal(shape, np.float32), np.float16)
    return np.asarray(source.standard_normal(shape, dtype.numpy))


def truncated_normal(shape: Shape, dtype: DType, source: Source) -> Array:
    """As ``normal``, with what is more than two standard deviations away drawn again."""
    made = normal(shape, dtype, source)
    flat = made.reshape(-1)
    far = np.flatnonzero(np.abs(flat) > _CUT)
    while far.size:
        flat[far] = normal((far.size,), dtype, source)
        far = far[np.abs(flat[far]) > _CUT]
    return made


def integers(shape: Shape, dtype: DType, source: Source, low: int, high: int) -> Array:
    """Whole numbers from ``low`` up to, but not including, ``high``."""
    return np.asarray(source.integers(low, high, shape, dtype.numpy))


def any_integers(shape: Shape, dtype: DType, source: Source) -> Array:
    """Whole numbers from all that a type has."""
    limits = np.iinfo(dtype.numpy)
    return np.asarray(source.integers(limits.min, limits.max, shape, dtype.numpy, endpoint=True))


def shuffled(array: Array, source: Source) -> Array:
    """The slices of an array along its first axis in another order."""
    return array.copy() if array.ndim == 0 else owned(source.permutation(array, 0))


def categories(logits: Array, samples: int, dtype: DType, source: Source) -> Array:
    """For each row of logarithms of weights, numbers of columns drawn by weight."""
    chances = logits.astype(np.float64)
    # A class with the logit NaN or minus infinity is never drawn.
    chances[np.isnan(chances)] = -np.inf
    peak = chances.max(axis=1, keepdims=True)
    chances -= np.where(np.isfinite(peak), peak, 0)
    np.exp(chances, out=chances)
    limits = np.cumsum(chances, axis=1)
    made = np.empty((len(logits), samples), dtype.numpy)
    for row, limit in enumerate(limits):
        drawn = source.random(samples) * limit[-1]
        made[row] = np.searchsorted(limit, drawn, "right")
    # A product that was rounded up to the last limit would be one column too far.
    np.minimum(made, logits.shape[1] - 1, out=made)
    return made


def poisson(rates: Array, shape: Shape, dtype: DType, source: Source) -> Array:
    """For each rate, counts of events; a rate that is no rate has none."""
    usable = np.where(rates > 0, rates, 0)
    return np.asarray(source.poisson(usable, shape + rates.shape)).astype(dtype.numpy)


def gamma(alpha: Array, shape: Shape, source: Source) -> Array:
    """For each ``alpha``, floats of a gamma distribution with scale 1."""
    usable = np.where(alpha > 0, alpha, 1)
    kind: Any = np.float64 if alpha.dtype == np.float64 else np.float32
    made = np.asarray(source.standard_gamma(usable.astype(kind), shape + alpha.shape, kind))
    made = made.astype(alpha.dtype, copy=False)
    made[np.broadcast_to(~(alpha > 0), made.shape)] = np.nan
    return made


__all__ = [
    "any_integers",
    "categories",
    "gamma",
    "integers",
    "normal",
    "poisson",
    "shuffled",
    "truncated_normal",
    "uniform",
]
