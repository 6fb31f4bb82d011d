"""Operations that count elements in intervals of equal width."""

from typing import Any

import numpy as np

from allotment.tf.ops.arguments.integers import number_argument
from allotment.tf.ops.arrays import Array, as_array
from allotment.tf.ops.blocks import BLOCK
from allotment.tf.ops.convert import to_pair, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output, number
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.table import dims, operation
from allotment.tf.ops.types.element_types import FLOATS, check_attribute
from allotment.tf.tensors.dtype import BY_NUMPY, as_dtype, int32
from allotment.tf.tensors.tensor import EagerTensor


def _range_fault(values: Array, ends: Array, count: int) -> str | None:
    if ends.shape != (2,):
        return f"value_range should be a vector of 2 elements, but got shape {dims(ends)}"
    if not ends[0] < ends[1]:
        return f"value_range should satisfy value_range[0] < value_range[1], but got '[{ends[0]:g}, {ends[1]:g}]'"
    return None if count > 0 else f"nbins should be a positive number, but got '{count}'"


def _counts(values: Array, ends: Array, count: int, dtype: Any) -> Array:
    if count == 1:
        return np.asarray([values.size], dtype)
    low, high = (float(end) for end in ends)
    total, elements = np.zeros(count, np.int64), values.reshape(-1)
    for start in range(0, values.size, BLOCK):
        places = np.subtract(elements[start : start + BLOCK], low, dtype=np.float64)
        np.true_divide(places, (high - low) / count, out=places)
        # Values outside of the range go into the outermost bins.
        bins = np.clip(places, 0, count - 1, out=places).astype(np.int32)
        total += np.bincount(bins, minlength=count)
    return np.asarray(total, dtype)


def _counts_fault(values: Array, ends: Array, count: int, dtype: Any) -> str | None:
    fault = _range_fault(values, ends, count)
    # One bin has all elements, whatever they are.
    if fault is None and count > 1 and values.dtype.kind == "f" and np.isnan(values).any():
        return "Histogram values must not contain NaN"
    return fault


def _bin_numbers(values: Array, ends: Array, count: int) -> Array:
    places = np.subtract(values, ends[0])
    places = as_array(np.true_divide(places, ends[1] - ends[0]))
    np.multiply(places, values.dtype.type(count), out=places)
    np.floor(places, out=places)
    return as_array(np.clip(places, 0, count - 1)).astype(np.int32)


def _bin_numbers_fault(values: Array, ends: Array, count: int) -> str | None:
    if ends.shape != (2,):
        return f"value_range should be a vector of 2 elements, but got shape {dims(ends)}"
    return None if count > 0 else f"nbins {count} must > 0"


def _histogram_shape(c: Inference, count: Any, dtype: Any) -> list[Output]:
    c.ranked(1, 1)
    bins = number(count)
    if bins is not None and bins <= 0:
        c.refuse(f"Requires nbins > 0: {bins}")
    return c.one((bins,), BY_NUMPY[np.dtype(dtype)])


def _bins_shape(c: Inference, count: Any) -> list[Output]:
    return c.one(c.inputs[0]._shape, int32)


_histogram = operation(
    "HistogramFixedWidth",
    _counts,
    shape=_histogram_shape,
    fault=_counts_fault,
    kinds=("CPU",),
)


_bins_row = operation(
    "HistogramFixedWidthBins",
    _bin_numbers,
    shape=_bins_shape,
    fault=_bin_numbers_fault,
    takes=FLOATS.__contains__,
)


@in_name_scope("histogram_fixed_width")
def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, name: str | None = None
) -> EagerTensor:
    """Count values in bins of one width; those outside in the outermost ones. As ``tf.histogram_fixed_width``.

    Raises:
        InvalidArgumentError: The range is empty, or there are no bins.
    """
    wanted = as_dtype(dtype)
    check_attribute("HistogramFixedWidth", "dtype", wanted, name)
    inputs, count = to_pair(values, value_range), number_argument(nbins, "nbins")
    return run(_histogram, inputs, count, wanted.numpy, name=name)  # type: ignore[no-any-return]


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, name: str | None = None
) -> EagerTensor:
    """Return the bin of each float, as int32. As ``tf.histogram_fixed_width_bins``.

    See ``histogram_fixed_width``. The range may go down. ``dtype`` has no effect.
    """
    inputs = to_tensor(values), to_tensor(value_range)
    return run(_bins_row, inputs, number_argument(nbins, "nbins"), name=name)  # type: ignore[no-any-return]


__all__ = ["histogram_fixed_width", "histogram_fixed_width_bins"]
