"""Gradients of pooling."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from allotment.tf.ops.array.creation import shape_input, zeros_like
from allotment.tf.ops.arrays import Array, full, in_single, owned
from allotment.tf.ops.autodiff.broadcasting import shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.nn.window_shapes import images_as_requested
from allotment.tf.ops.nn.windows import Windows, padded, placed
from allotment.tf.ops.table import OPERATIONS, operation

_AVERAGE: Final = OPERATIONS["AvgPool"]


def _firsts(given: Array, largest: Array, windows: Windows) -> Iterator[tuple[tuple[int, ...], Array]]:
    """For each place of a window, in which windows the largest element is there, and at no place before."""
    bordered = padded(given, windows.pads(given.shape[1:3]), -np.inf)
    left = full(largest.shape, 1, np.bool_, like=largest)
    for place in np.ndindex(*windows.size):
        found = left & (placed(bordered, windows, place, largest.shape[1:3]) == largest)
        left &= ~found
        yield place, found


def _within(bordered: Array, lengths: Any, windows: Windows) -> Array:
    """Images without their border."""
    (top, _), (left, _) = windows.pads(lengths)
    return owned(windows.as_given(bordered[:, top : top + lengths[0], left : left + lengths[1]]))


def _border(shape: Any, windows: Windows, like: Array) -> Array:
    """Zeros for images with their border; the shape has the channels last."""
    lengths = [length + sum(pad) for length, pad in zip(shape[1:3], windows.pads(shape[1:3]), strict=True)]
    return np.zeros((shape[0], *lengths, shape[3]), like.dtype, like=like)


@in_single
def _max_back(images: Array, pooled: Array, gradient: Array, windows: Windows) -> Array:
    given, slopes = windows.channels_last(images), windows.channels_last(gradient)
    result = _border(given.shape, windows, images)
    for place, found in _firsts(given, windows.channels_last(pooled), windows):
        placed(result, windows, place, slopes.shape[1:3])[...] += np.where(found, slopes, 0)
    return _within(result, given.shape[1:3], windows)


@in_single
def _picked(images: Array, pooled: Array, others: Array, windows: Windows) -> Array:
    """The elements of other images where these have the largest ones."""
    given, largest = windows.channels_last(images), windows.channels_last(pooled)
    bordered = padded(windows.channels_last(others), windows.pads(given.shape[1:3]), 0)
    result = np.zeros_like(largest)
    for place, found in _firsts(given, largest, windows):
        result += np.where(found, placed(bordered, windows, place, largest.shape[1:3]), 0)
    return owned(windows.as_given(result))


@in_single
def _average_back(gradient: Array, shape: tuple[int, ...], windows: Windows) -> Array:
    slopes = windows.channels_last(gradient)
    lengths = [shape[axis] for axis in windows.image_axes()]
    counts = slopes.shape[1:3]
    inside = padded(full((1, *lengths, 1), 1, gradient.dtype, like=gradient), windows.pads(lengths), 0)
    elements = np.zeros((1, *counts, 1), gradient.dtype, like=gradient)
    for place in np.ndindex(*windows.size):
        elements += placed(inside, windows, place, counts)
    shares = slopes / elements
    result = _border((shape[0], *lengths, slopes.shape[3]), windows, gradient)
    for place in np.ndindex(*windows.size):
        placed(result, windows, place, counts)[...] += shares
    return _within(result, lengths, windows)


def _max_back_shape(c: Inference, windows: Windows) -> list[Output]:
    return c.one(c.ranked(0, 4))


def _picked_shape(c: Inference, windows: Windows) -> list[Output]:
    return c.one(c.ranked(1, 4))


_max_back_row = operation("MaxPoolGrad", _max_back, shape=_max_back_shape)
_picked_row = operation("MaxPoolGradGrad", _picked, shape=_picked_shape)
_average_back_row = operation("AvgPoolGrad", _average_back, shape=images_as_requested)


@gradient("MaxPool", outputs=True)
def _max_pool(call: Call, upstream: Any) -> Any:
    return run(_max_back_row, (call.inputs[0], call.outputs[0], upstream), *call.args)


@gradient("MaxPoolGrad", inputs=(0, 1))
def _max_pool_grad(call: Call, upstream: Any) -> list[Any]:
    images, pooled, _ = call.inputs
    return [*_steps(call), run(_picked_row, (images, pooled, upstream), *call.args)]


def _steps(call: Call) -> list[Any]:
    """The gradients of what says where the largest elements are, which changes in steps: zeros, as TensorFlow's."""
    return [
        zeros_like(each) if wanted else None
        for each, wanted in zip(call.inputs[:2], call.wanted, strict=False)
    ]


@gradient("MaxPoolGradGrad", inputs=(0, 1))
def _max_pool_grad_grad(call: Call, upstream: Any) -> list[Any]:
    images, pooled, _ = call.inputs
    return [*_steps(call), run(_max_back_row, (images, pooled, upstream), *call.args)]


@gradient("AvgPool", inputs=False)
def _average_pool(call: Call, upstream: Any) -> Any:
    return run(_average_back_row, (upstream,), shape_input(shape_of(call.inputs[0])), *call.args)


@gradient("AvgPoolGrad", inputs=False)
def _average_pool_grad(call: Call, upstream: Any) -> Any:
    return run(_AVERAGE, (upstream,), call.args[-1])


__all__: list[str] = []
