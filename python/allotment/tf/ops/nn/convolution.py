"""Convolution of images."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import reshape
from allotment.tf.ops.array.shapes import shape
from allotment.tf.ops.arrays import Array, in_single, owned
from allotment.tf.ops.convert import to_pair
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.nn.window_shapes import as_given, images_shape, window_counts
from allotment.tf.ops.nn.windows import Part, Windows, padded, parts, windows_argument
from allotment.tf.ops.table import dims, operation
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
    result = np.zeros((len(given), *windows.counts(given.shape[1:3]), outputs), images.dtype, like=images)
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
        input: Floats of the shape (images, height, width, channels), or as ``data_format`` says; several axes in the
            place of ``images`` stay.
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
    rank = rank_of(images)
    if rank is not None and rank > 4:
        # Several batch axes are made one.
        lengths = shape(images)
        flat = reshape(images, concat([[-1], lengths[-3:]], 0))
        made = conv2d(flat, kernel, strides, padding, data_format, dilations, name)
        return reshape(made, concat([lengths[:-3], shape(made)[-3:]], 0))
    windows = windows_argument(filter_size(kernel), strides, dilations, padding, data_format, _conv2d.name)
    return run(_conv2d, (images, kernel), windows, name=name)  # type: ignore[no-any-return]


__all__ = ["conv2d", "patches"]
