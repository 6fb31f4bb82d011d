"""Convolution channel by channel, convolution the other way around, and both and pooling along one axis."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from allotment import errors
from allotment.tf.ops.arguments.integers import kernel_error, number_argument, numbers_argument
from allotment.tf.ops.array.layout import expand_dims, squeeze
from allotment.tf.ops.arrays import Array, in_single, owned
from allotment.tf.ops.convert import to_pair, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output, multiplied
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.nn.convolution import conv2d, filter_size
from allotment.tf.ops.nn.pooling import avg_pool2d, max_pool2d
from allotment.tf.ops.nn.window_shapes import as_given, images_as_requested, images_shape, window_counts
from allotment.tf.ops.nn.windows import Windows, padded, parts, placed, windows_argument
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.tensor import EagerTensor


@in_single
def _depthwise(images: Array, filters: Array, windows: Windows) -> Array:
    windows = windows.of_filters(filters.shape)
    given = windows.channels_last(images)
    depth, multiplier = filters.shape[2:]
    counts = windows.counts(given.shape[1:3])
    result = np.zeros((len(given), *counts, depth * multiplier), images.dtype, like=images)
    bordered = padded(given, windows.pads(given.shape[1:3]), 0)
    # There may be no window, and no row of them.
    for part, _ in parts(len(given) if result.size else 0, 1, result[:1].size):
        elements, sums = by_result(bordered[part], multiplier), in_rows(result[part])
        for place, factors in factors_by_place(filters, counts[1]):
            sums += in_rows(placed(elements, windows, place, counts)) * factors
    return owned(windows.as_given(result))


def by_result(images: Array, multiplier: int) -> Array:
    """Images with each channel as often as it has results."""
    return images if multiplier == 1 else np.repeat(images, multiplier, -1)


def in_rows(images: Array) -> Array:
    """Images with all elements of a row along one axis: loops over a row are long, those over channels are not."""
    return images.reshape(*images.shape[:2], -1)


def factors_by_place(filters: Array, columns: int) -> Iterator[tuple[tuple[int, ...], Array]]:
    """The filters of channels at each place of a window, repeated for a whole row of an image."""
    for place in np.ndindex(*filters.shape[:2]):
        yield place, np.tile(filters[place].reshape(-1), columns)


def _depthwise_fault(images: Array, filters: Array, windows: Windows) -> str | None:
    for what, array in (("input", images), ("filter", filters)):
        if array.ndim != 4:
            return f"{what} must be 4-dimensional: {dims(array)}"
    windows = windows.of_filters(filters.shape)
    channels = windows.channels_last(images).shape[-1]
    if channels != filters.shape[2]:
        return f"input and filter must have the same depth: {channels} vs {filters.shape[2]}"
    return windows.fault(images)


def _depthwise_shape(c: Inference, windows: Windows) -> list[Output]:
    batch, height, width, channels = images_shape(c, 0, windows)
    low, wide, depth, multiplier = c.ranked(1, 4)
    depth = c.same(channels, depth)
    counts = window_counts(c, (height, width), (low, wide), windows)
    return c.one(as_given((batch, *counts, multiplied(depth, multiplier)), windows))


_depthwise_row = operation(
    "DepthwiseConv2dNative", _depthwise, shape=_depthwise_shape, fault=_depthwise_fault
)


def depthwise_conv2d(
    input: Any,  # noqa: A002 - TensorFlow's name
    filter: Any,  # noqa: A002 - TensorFlow's name
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """Slide filters over images, those of each channel over that channel alone. As ``tf.nn.depthwise_conv2d``.

    ``filter`` has the shape (height, width, channels, results for each channel), and ``strides`` are four; see
    ``conv2d`` for the rest.

    Raises:
        InvalidArgumentError: The shapes do not fit, or there are not four strides. In a graph a ``ValueError``.
        TypeError: The strides are no list.
        ValueError: Another argument is of no use.
    """
    images, kernel = to_pair(input, filter)
    if not isinstance(strides, list | tuple):
        raise TypeError(
            f"Expected list for 'strides' argument to 'depthwise_conv2d_native' Op, not {strides}."
        )
    if len(strides) != 4:
        raise kernel_error(
            errors.InvalidArgumentError, "Sliding window strides field must specify 4 dimensions"
        )
    windows = windows_argument(
        filter_size(kernel), strides, dilations, padding, data_format, _depthwise_row.name
    )
    return run(_depthwise_row, (images, kernel), windows, name=name)  # type: ignore[no-any-return]


def _spread(gradient: Array, filters: Array, shape: tuple[int, ...], windows: Windows) -> Array:
    """Compute the gradient of a depthwise convolution for its images, from the gradient of its result."""
    windows = windows.of_filters(filters.shape)
    given = windows.channels_last(gradient)
    lengths = [shape[axis] for axis in windows.image_axes()]
    (top, bottom), (left, right) = pads = windows.pads(lengths)
    bordered = [length + sum(pad) for length, pad in zip(lengths, pads, strict=True)]
    channels = shape[1] if windows.channels_first else shape[3]
    result = np.zeros((shape[0], *bordered, channels), gradient.dtype, like=gradient)
    # Channels come in groups, if there are more than the filters have.
    depth = filters.shape[2]
    groups = channels // depth
    share = filters.shape[3] // groups
    for part, _ in parts(len(given), 1, math.prod(given.shape[1:3]) * depth):
        for y, x, group in np.ndindex(*filters.shape[:2], groups):
            mine = slice(group * share, (group + 1) * share)
            view = placed(result[part], windows, (y, x), given.shape[1:3])
            view[..., group * depth : (group + 1) * depth] += np.matmul(
                given[part, ..., mine], filters[y, x][:, mine].T
            )
    inside = result[:, top : bordered[0] - bottom, left : bordered[1] - right]
    return owned(windows.as_given(inside))


def _spread_fault(gradient: Array, filters: Array, shape: tuple[int, ...], windows: Windows) -> str | None:
    if len(shape) != 4:
        return f"Conv2DBackpropInput: input_sizes must have 4 elements, not {len(shape)}"
    for what, array in (("filter", filters), ("out_backprop", gradient)):
        if array.ndim != 4:
            return f"{what} must be 4-dimensional: {dims(array)}"
    windows = windows.of_filters(filters.shape)
    given = windows.channels_last(gradient)
    depth = shape[1] if windows.channels_first else shape[3]
    if given.shape[-1] != filters.shape[3]:
        return "Conv2DBackpropInput: filter and out_backprop must have the same out_depth"
    if filters.shape[2] == 0 or depth % filters.shape[2]:
        return f"input depth must be evenly divisible by filter depth: {depth} vs {filters.shape[2]}"
    if shape[0] != len(given):
        return "Conv2DBackpropInput: input and out_backprop must have the same batch size."
    lengths = [shape[axis] for axis in windows.image_axes()]
    counts = windows.counts(lengths)
    for place, (found, count) in enumerate(zip(given.shape[1:3], counts, strict=True)):
        if found != count:
            return (
                f"Conv2DCustomBackpropInput: Size of out_backprop doesn't match computed: actual = {found}, computed = "
                f"{count} spatial_dim: {windows.image_axes()[place]} input: {lengths[place]} filter: "
                f"{filters.shape[place]} output: {found} stride: {windows.strides[place]} dilation: "
                f"{windows.dilations[place]}"
            )
    return None


_transpose_row = operation(
    "Conv2DBackpropInput", in_single(_spread), shape=images_as_requested, fault=_spread_fault
)


def conv2d_transpose(
    input: Any,  # noqa: A002 - TensorFlow's name
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """Spread the elements of images with filters: ``conv2d``'s slope. As ``tf.nn.conv2d_transpose``.

    ``filters`` has the shape (height, width, results, channels), and ``output_shape`` that of the whole result: what
    ``conv2d`` with these arguments makes an image of the input's shape of.

    Raises:
        InvalidArgumentError: The shapes do not fit.
        ValueError: Another argument is of no use.
    """
    images, kernel = to_pair(input, filters)
    windows = windows_argument(
        filter_size(kernel), strides, dilations, padding, data_format, _transpose_row.name
    )
    shape = numbers_argument(output_shape, "output_shape")
    return run(_transpose_row, (images, kernel), shape, windows, name=name)  # type: ignore[no-any-return]


def _along(data_format: Any) -> tuple[str, int]:
    """The format of images that are sequences with an axis of length 1 more, and where that axis is from the end."""
    if data_format is not None and not (
        isinstance(data_format, str) and data_format in ("NWC", "NCW", "NHWC", "NCHW")
    ):
        raise ValueError("`data_format` must be 'NWC' or 'NCW'. " + f"Received: data_format={data_format}")
    return ("NCHW", -2) if data_format in ("NCW", "NCHW") else ("NHWC", -3)


def _single(value: Any, what: str) -> int:
    """One length from a number, or from one or three of which the others are 1."""
    numbers = numbers_argument(value, what)
    if len(numbers) == 3:
        numbers = tuple(each for each in numbers if each != 1) or (1,)
    if len(numbers) != 1:
        raise ValueError(f"{what} should be of length 1 or 3. Received: {what}={value}")
    return number_argument(numbers[0], what)


@in_name_scope("conv1d", None)
def conv1d(
    input: Any,  # noqa: A002 - TensorFlow's name
    filters: Any,
    stride: Any,
    padding: Any,
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """Slide filters along sequences and sum up. As ``tf.nn.conv1d``; see ``conv2d``.

    ``input`` has the shape (sequences, length, channels), ``filters`` (length, channels, results).
    """
    images, axis = _along(data_format)
    sequences, kernel = to_pair(input, filters)
    dilation = 1 if dilations is None else _single(dilations, "dilations")
    result = conv2d(
        expand_dims(sequences, axis),
        expand_dims(kernel, 0),
        [1, _single(stride, "stride")],
        padding,
        images,
        [1, dilation],
        name,
    )
    return squeeze(result, axis)


def _pool1d(
    pool: Any, sequences: Any, ksize: Any, strides: Any, padding: Any, data_format: Any, name: Any
) -> EagerTensor:
    images, axis = _along(data_format)
    size, stride = [1, _single(ksize, "ksize")], [1, _single(strides, "strides")]
    return squeeze(pool(expand_dims(to_tensor(sequences), axis), size, stride, padding, images, name), axis)


def max_pool1d(
    input: Any,  # noqa: A002 - TensorFlow's name
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NWC",
    name: str | None = None,
) -> EagerTensor:
    """The largest element of each window of sequences. As ``tf.nn.max_pool1d``; see ``max_pool``."""
    return _pool1d(max_pool2d, input, ksize, strides, padding, data_format, name)


def avg_pool1d(
    input: Any,  # noqa: A002 - TensorFlow's name
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NWC",
    name: str | None = None,
) -> EagerTensor:
    """The mean of each window of sequences. As ``tf.nn.avg_pool1d``; see ``max_pool``."""
    return _pool1d(avg_pool2d, input, ksize, strides, padding, data_format, name)


__all__ = ["avg_pool1d", "conv1d", "conv2d_transpose", "depthwise_conv2d", "max_pool1d"]
