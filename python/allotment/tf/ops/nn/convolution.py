"""Convolution and pooling of images."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from allotment.tf.ops.arrays import Array, in_single, owned
from allotment.tf.ops.convert import to_pair, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.nn.window_shapes import as_given, images_shape, window_counts
from allotment.tf.ops.nn.windows import Part, Windows, padded, parts, placed, windows_argument
from allotment.tf.ops.table import Operation, dims, operation
from allotment.tf.tensors.tensor import EagerTensor, Tensor


def patches(images: Array, windows: Windows) -> Iterator[tuple[Part, Array]]:
    """Every window's elements as a row of a matrix, in the order of the filters': a product with those is all the rest.

    There are several matrices, each of a part of the windows, so that they stay in the processor's cache, and the
    device needs memory for one of them.
    """
    rows, columns = windows.counts(images.shape[1:3])
    bordered = padded(images, windows.pads(images.shape[1:3]), 0)
    sliding = np.lib.stride_tricks.sliding_window_view(bordered, windows.spans(), (1, 2))
    (down, right), (low, wide) = windows.strides, windows.dilations
    chosen = sliding[:, ::down, ::right, :, ::low, ::wide].transpose(0, 1, 2, 4, 5, 3)
    width = math.prod(chosen.shape[3:])
    for part in parts(len(images), rows, columns * width):
        elements = chosen[part]
        yield part, elements.reshape(math.prod(elements.shape[:3]), width)


@in_single
def _convolve(images: Array, filters: Array, windows: Windows) -> Array:
    windows = windows.of_filters(filters.shape)
    given = windows.channels_last(images)
    depth, outputs = filters.shape[2:]
    result = np.zeros((len(given), *windows.counts(given.shape[1:3]), outputs), images.dtype)
    # Nothing to add up where there is no window, and NumPy has no view of none.
    if result.size and filters.size:
        groups = given.shape[-1] // depth
        share = outputs // groups
        for group in range(groups):
            mine = slice(group * share, (group + 1) * share)
            matrix = filters[..., mine].reshape(-1, share)
            for part, rows in patches(given[..., group * depth : (group + 1) * depth], windows):
                np.matmul(rows, matrix, out=result[part].reshape(-1, outputs)[:, mine])
    return owned(windows.as_given(result))


def _convolution_fault(images: Array, filters: Array, windows: Windows) -> str | None:
    for what, array in (("input", images), ("filter", filters)):
        if array.ndim != 4:
            return f"{what} must be 4-dimensional: {dims(array)}"
    windows = windows.of_filters(filters.shape)
    channels, (depth, outputs) = windows.channels_last(images).shape[-1], filters.shape[2:]
    if depth == 0 or channels % depth:
        return f"input depth must be evenly divisible by filter depth: {channels} vs {depth}"
    if outputs % max(channels // depth, 1):
        return f"output depth must be evenly divisible by number of groups: {outputs} vs {channels // depth}"
    return windows.fault(images)


def _convolution_shape(c: Inference, windows: Windows) -> list[Output]:
    batch, height, width, channels = images_shape(c, 0, windows)
    low, wide, depth, outputs = c.ranked(1, 4)
    if channels is not None and depth is not None:
        if depth == 0 or channels % depth:
            c.refuse(
                f"Depth of input ({channels}) is not a multiple of input depth of filter ({depth})",
            )
        if outputs is not None and channels and outputs % (channels // depth):
            c.refuse(
                f"Depth of output ({outputs}) is not a multiple of the number of groups ({channels // depth})"
            )
    counts = window_counts(c, (height, width), (low, wide), windows)
    return c.one(as_given((batch, *counts, outputs), windows))


_conv2d = operation("Conv2D", _convolve, shape=_convolution_shape, fault=_convolution_fault)


def filter_size(filters: Tensor) -> tuple[int, int]:
    """Height and width of filters; 1 and 1 where they have none, or a graph does not know them."""
    dims = filters.shape._dims
    if dims is None or len(dims) != 4 or not dims[0] or not dims[1]:
        return 1, 1
    return dims[0], dims[1]


def conv2d(
    input: Any,  # noqa: A002 - TensorFlow's name
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """Slide filters over images and sum up. As ``tf.nn.conv2d``.

    Args:
        input: Floats of the shape (images, height, width, channels), or as ``data_format`` says.
        filters: The same type, of the shape (height, width, channels, results); channels that are a multiple of
            the filters' are taken in groups.
        strides: How far a window moves, as one number, two, or four with 1 for images and channels.
        padding: ``"SAME"``, ``"VALID"``, or four pairs of zeros to add.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        dilations: Distance between the elements under a filter, as ``strides``.
        name: Only looked at in error texts.

    Raises:
        InvalidArgumentError: The shapes do not fit.
        ValueError: Another argument is of no use.
    """
    images, kernel = to_pair(input, filters)
    windows = windows_argument(filter_size(kernel), strides, dilations, padding, data_format, _conv2d.name)
    return run(_conv2d, (images, kernel), windows, name=name)  # type: ignore[no-any-return]


def _views(images: Array, windows: Windows) -> Iterator[Array]:
    """Views of images with a border: the elements of every window at one place of it, place after place."""
    counts = [
        (length - size) // stride + 1
        for length, size, stride in zip(images.shape[1:3], windows.size, windows.strides, strict=True)
    ]
    return (placed(images, windows, place, counts) for place in np.ndindex(*windows.size))


def _max_pool(images: Array, windows: Windows) -> Array:
    given = windows.channels_last(images)
    lowest = (np.finfo if images.dtype.kind == "f" else np.iinfo)(images.dtype).min
    counts = windows.counts(given.shape[1:3])
    result = np.full((len(given), *counts, given.shape[-1]), lowest, images.dtype)
    for view in _views(padded(given, windows.pads(given.shape[1:3]), lowest), windows):
        # A NaN is not larger than anything.
        np.fmax(result, view, out=result)
    return owned(windows.as_given(result))


@in_single
def _average_pool(images: Array, windows: Windows) -> Array:
    given = windows.channels_last(images)
    counts, pads = windows.counts(given.shape[1:3]), windows.pads(given.shape[1:3])
    result = np.zeros((len(given), *counts, given.shape[-1]), images.dtype)
    for view in _views(padded(given, pads, 0), windows):
        np.add(result, view, out=result)
    # The border does not count.
    inside = np.ones((1, *given.shape[1:3], 1), images.dtype)
    elements = np.zeros((1, *counts, 1), images.dtype)
    for view in _views(padded(inside, pads, 0), windows):
        np.add(elements, view, out=elements)
    np.true_divide(result, elements, out=result)
    return owned(windows.as_given(result))


def _pool_fault(images: Array, windows: Windows) -> str | None:
    if images.ndim != 4:
        return f"tensor_in must be 4-dimensional: {dims(images)}"
    return windows.fault(images)


def _pool_shape(c: Inference, windows: Windows) -> list[Output]:
    batch, height, width, channels = images_shape(c, 0, windows)
    counts = window_counts(c, (height, width), windows.size, windows)
    return c.one(as_given((batch, *counts, channels), windows))


_max_row = operation("MaxPool", _max_pool, shape=_pool_shape, fault=_pool_fault)
_average_row = operation("AvgPool", _average_pool, shape=_pool_shape, fault=_pool_fault)


def max_pool(
    input: Any,  # noqa: A002 - TensorFlow's name
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> EagerTensor:
    """The largest element of each window, channel by channel. As ``tf.nn.max_pool``, for images.

    Args:
        input: Real numbers of the shape (images, height, width, channels), or as ``data_format`` says.
        ksize: Height and width of a window, as ``strides``.
        strides: How far a window moves, as one number, two, or four with 1 for images and channels.
        padding: ``"SAME"``, ``"VALID"``, or four pairs of elements to add that no window counts.
        data_format: ``"NHWC"`` or ``"NCHW"``.
        name: Only looked at in error texts.

    Raises:
        InvalidArgumentError: The input has another rank, or is smaller than a window.
        ValueError: Another argument is of no use.
    """
    return _pool(_max_row, input, ksize, strides, padding, data_format, name)


def avg_pool(
    input: Any,  # noqa: A002 - TensorFlow's name
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> EagerTensor:
    """The mean of each window, channel by channel. As ``tf.nn.avg_pool``, for images; see ``max_pool``."""
    return _pool(_average_row, input, ksize, strides, padding, data_format, name)


def _pool(
    row: Operation, images: Any, ksize: Any, strides: Any, padding: Any, data_format: Any, name: str | None
) -> EagerTensor:
    windows = windows_argument(ksize, strides, None, padding, data_format, row.name)
    return run(row, (to_tensor(images),), windows, name=name)  # type: ignore[no-any-return]


def max_pool2d(
    input: Any,  # noqa: A002 - TensorFlow's name
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> EagerTensor:
    """The largest element of each window, channel by channel. As ``tf.nn.max_pool2d``; see ``max_pool``."""
    return _pool(_max_row, input, ksize, strides, padding, data_format, name)


def avg_pool2d(
    input: Any,  # noqa: A002 - TensorFlow's name
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> EagerTensor:
    """The mean of each window, channel by channel. As ``tf.nn.avg_pool2d``; see ``max_pool``."""
    return _pool(_average_row, input, ksize, strides, padding, data_format, name)


__all__ = ["avg_pool", "avg_pool2d", "conv2d", "max_pool", "max_pool2d", "patches"]
