"""Gradients of convolution. Those of images and of filters are operations, whose gradients are convolutions again."""

import math
from typing import Any, Final

import numpy as np

from allotment.tf.ops.array.creation import shape_input
from allotment.tf.ops.arrays import Array, in_single, owned
from allotment.tf.ops.autodiff.broadcasting import shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.execute import run
from allotment.tf.ops.nn.convolution import patches
from allotment.tf.ops.nn.convolution_variants import by_result, factors_by_place, in_rows
from allotment.tf.ops.nn.window_shapes import images_as_requested
from allotment.tf.ops.nn.windows import Windows, padded, parts, placed
from allotment.tf.ops.table import OPERATIONS, operation

_FORWARD: Final = OPERATIONS["Conv2D"]
_BY_IMAGES: Final = OPERATIONS["Conv2DBackpropInput"]
_FORWARD_BY_CHANNEL: Final = OPERATIONS["DepthwiseConv2dNative"]


@in_single
def _by_filters(images: Array, gradient: Array, shape: tuple[int, ...], windows: Windows) -> Array:
    windows = windows.of_filters(shape)
    given, slopes = windows.channels_last(images), windows.channels_last(gradient)
    depth, outputs = shape[2:]
    result = np.zeros(shape, images.dtype, like=images)
    groups = given.shape[-1] // max(depth, 1)
    share = outputs // max(groups, 1)
    for group in range(groups if result.size and slopes.size else 0):
        mine = slice(group * share, (group + 1) * share)
        total = np.zeros((math.prod(shape[:3]), share), images.dtype, like=images)
        for part, rows in patches(given[..., group * depth : (group + 1) * depth], windows):
            total += np.matmul(rows.T, slopes[part].reshape(-1, outputs)[:, mine])
        result[..., mine] = total.reshape(*shape[:3], share)
    return result


@in_single
def _by_images_by_channel(gradient: Array, filters: Array, shape: tuple[int, ...], windows: Windows) -> Array:
    windows = windows.of_filters(filters.shape)
    depth, multiplier = filters.shape[2:]
    slopes = windows.channels_last(gradient)
    lengths = [shape[axis] for axis in windows.image_axes()]
    pads = windows.pads(lengths)
    bordered = [length + sum(pad) for length, pad in zip(lengths, pads, strict=True)]
    result = np.zeros((shape[0], *bordered, depth), gradient.dtype, like=gradient)
    rows, columns = slopes.shape[1:3]
    for part, _ in parts(len(slopes) if slopes.size else 0, 1, slopes[:1].size):
        upstream = in_rows(slopes[part])
        for place, factors in factors_by_place(filters, columns):
            product = (upstream * factors).reshape(-1, rows, columns, depth, multiplier)
            view = placed(result[part], windows, place, (rows, columns))
            view += product[..., 0] if multiplier == 1 else product.sum(-1)
    (top, _), (left, _) = pads
    inside = result[:, top : top + lengths[0], left : left + lengths[1]]
    return owned(windows.as_given(inside))


@in_single
def _by_filters_by_channel(images: Array, gradient: Array, shape: tuple[int, ...], windows: Windows) -> Array:
    windows = windows.of_filters(shape)
    given, slopes = windows.channels_last(images), windows.channels_last(gradient)
    depth, multiplier = shape[2:]
    rows, columns = slopes.shape[1:3]
    bordered = padded(given, windows.pads(given.shape[1:3]), 0)
    result = np.zeros(shape, images.dtype, like=images)
    for part, _ in parts(len(given) if slopes.size else 0, 1, slopes[:1].size):
        upstream, elements = in_rows(slopes[part]), by_result(bordered[part], multiplier)
        for place in np.ndindex(*shape[:2]):
            view = in_rows(placed(elements, windows, place, (rows, columns)))
            result[place] += (
                np.einsum("nhk,nhk->k", view, upstream).reshape(columns, depth, multiplier).sum(0)
            )
    return result


_by_filters_row = operation("Conv2DBackpropFilter", _by_filters, shape=images_as_requested)
_by_images_by_channel_row = operation(
    "DepthwiseConv2dNativeBackpropInput", _by_images_by_channel, shape=images_as_requested
)
_by_filters_by_channel_row = operation(
    "DepthwiseConv2dNativeBackpropFilter", _by_filters_by_channel, shape=images_as_requested
)


def _enter(forward: Any, by_images: Any, by_filters: Any) -> None:
    """Enter the gradients of a convolution and of its two gradients: each is linear in both of its inputs."""

    def of_images(upstream: Any, filters: Any, images: Any, windows: Windows) -> Any:
        return run(by_images, (upstream, filters), shape_input(shape_of(images)), windows)

    def of_filters(images: Any, upstream: Any, filters: Any, windows: Windows) -> Any:
        return run(by_filters, (images, upstream), shape_input(shape_of(filters)), windows)

    @gradient(forward.name, inputs="beside others")
    def back(call: Call, upstream: Any) -> list[Any]:
        (images, filters), windows = call.inputs, call.args[-1]
        return [
            of_images(upstream, filters, images, windows) if call.wanted[0] else None,
            of_filters(images, upstream, filters, windows) if call.wanted[1] else None,
        ]

    @gradient(by_images.name, inputs="beside others")
    def back_by_images(call: Call, upstream: Any) -> list[Any]:
        slopes, filters, *_ = call.inputs
        windows = call.args[-1]
        return [
            run(forward, (upstream, filters), windows) if call.wanted[0] else None,
            of_filters(upstream, slopes, filters, windows) if call.wanted[1] else None,
        ]

    @gradient(by_filters.name, inputs="beside others")
    def back_by_filters(call: Call, upstream: Any) -> list[Any]:
        images, slopes, *_ = call.inputs
        windows = call.args[-1]
        return [
            of_images(slopes, upstream, images, windows) if call.wanted[0] else None,
            run(forward, (images, upstream), windows) if call.wanted[1] else None,
        ]


_enter(_FORWARD, _BY_IMAGES, _by_filters_row)
_enter(_FORWARD_BY_CHANNEL, _by_images_by_channel_row, _by_filters_by_channel_row)

__all__: list[str] = []
