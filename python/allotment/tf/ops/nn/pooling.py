"""The largest element or the mean in windows over images."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from allotment.tf.ops.arrays import Array, full, in_single, owned
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.nn.window_shapes import as_given, images_shape, window_counts
from allotment.tf.ops.nn.windows import Windows, padded, placed, windows_argument
from allotment.tf.ops.table import Operation, dims, operation
from allotment.tf.tensors.tensor import EagerTensor


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
    result = full((len(given), *counts, given.shape[-1]), lowest, images.dtype, like=images)
    for view in _views(padded(given, windows.pads(given.shape[1:3]), lowest), windows):
        # A NaN is not larger than anything.
        np.fmax(result, view, out=result)
    return owned(windows.as_given(result))


@in_single
def _average_pool(images: Array, windows: Windows) -> Array:
    given = windows.channels_last(images)
    counts, pads = windows.counts(given.shape[1:3]), windows.pads(given.shape[1:3])
    result = np.zeros((len(given), *counts, given.shape[-1]), images.dtype, like=images)
    for view in _views(padded(given, pads, 0), windows):
        np.add(result, view, out=result)
    # The border does not count.
    inside = full((1, *given.shape[1:3], 1), 1, images.dtype, like=images)
    elements = np.zeros((1, *counts, 1), images.dtype, like=images)
    for view in _views(padded(inside, pads, 0), windows):
        np.add(elements, view, out=elements)
    np.true_divide(result, elements, out=result)
    return owned(windows.as_given(result))


def _pool_fault(images: Array, windows: Windows) -> str | None:
    if images.ndim != 4:
        return f"tensor_in must be 4-dimensional: {dims(images)}"
    return windows.fault(images)


def _max_pool_fault(images: Array, windows: Windows) -> str | None:
    if isinstance(windows.padding, tuple):
        # A window in the border alone has no largest element.
        sides = ("Top", "Bottom"), ("Left", "Right")
        for names, pads, size in zip(sides, windows.padding, windows.size, strict=True):
            for name, pad in zip(names, pads, strict=True):
                if pad >= size:
                    return f"{name} padding {pad} needs to be smaller than the window size {size}"
    return _pool_fault(images, windows)


def _pool_shape(c: Inference, windows: Windows) -> list[Output]:
    batch, height, width, channels = images_shape(c, 0, windows)
    counts = window_counts(c, (height, width), windows.size, windows)
    return c.one(as_given((batch, *counts, channels), windows))


_max_row = operation("MaxPool", _max_pool, shape=_pool_shape, fault=_max_pool_fault)


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


__all__ = ["avg_pool", "avg_pool2d", "max_pool", "max_pool2d"]
