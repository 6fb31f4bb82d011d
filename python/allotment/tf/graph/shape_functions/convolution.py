"""Shapes of convolution and pooling, and of their gradients."""

from typing import Any

from allotment.tf.ops.inference.shape_functions import (
    Inference,
    Output,
    lengths,
    multiplied,
    shape_function,
)
from allotment.tf.ops.nn.windows import Windows

Size = tuple[int | None, int | None]
Images = tuple[int | None, int | None, int | None, int | None]


def _images(dims: tuple[int | None, ...], windows: Windows) -> Images:
    """Batch, height, width and channels of images."""
    batch, *rest = dims
    first, second, third = rest
    return (batch, second, third, first) if windows.channels_first else (batch, first, second, third)


def _as_given(images: Images, windows: Windows) -> Images:
    batch, height, width, channels = images
    return (batch, channels, height, width) if windows.channels_first else images


def _counts(c: Inference, size: Size, window: Size, windows: Windows) -> Size:
    """How many windows there are along each axis."""
    found: list[int | None] = []
    for axis, (length, side) in enumerate(zip(size, window, strict=True)):
        stride, dilation = windows.strides[axis], windows.dilations[axis]
        if length is None:
            found.append(None)
        elif windows.padding == "SAME":
            found.append(-(-length // stride))
        elif side is None:
            found.append(None)
        else:
            around = 0 if windows.padding == "VALID" else sum(windows.padding[axis])  # type: ignore[arg-type]
            span = (side - 1) * dilation + 1
            # A kernel makes an empty result of images that are only a little too small; a graph has no node for it.
            if length + around < span:
                c.refuse(f"Negative dimension size caused by subtracting {span} from {length + around}")
            found.append((length + around - span) // stride + 1)
    return found[0], found[1]


@shape_function("Conv2D")
def _convolution(c: Inference, windows: Windows) -> list[Output]:
    batch, height, width, channels = _images(c.ranked(0, 4), windows)
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
    counts = _counts(c, (height, width), (low, wide), windows)
    return c.one(_as_given((batch, *counts, outputs), windows))


@shape_function("DepthwiseConv2dNative")
def _by_channel(c: Inference, windows: Windows) -> list[Output]:
    batch, height, width, channels = _images(c.ranked(0, 4), windows)
    low, wide, depth, multiplier = c.ranked(1, 4)
    depth = c.same(channels, depth)
    counts = _counts(c, (height, width), (low, wide), windows)
    return c.one(_as_given((batch, *counts, multiplied(depth, multiplier)), windows))


@shape_function("MaxPool", "AvgPool")
def _pool(c: Inference, windows: Windows) -> list[Output]:
    batch, height, width, channels = _images(c.ranked(0, 4), windows)
    counts = _counts(c, (height, width), windows.size, windows)
    return c.one(_as_given((batch, *counts, channels), windows))


@shape_function("Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput")
def _by_images(c: Inference, shape: Any, windows: Windows) -> list[Output]:
    return _given(c, shape)


@shape_function("Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter")
def _by_filters(c: Inference, shape: Any, windows: Windows) -> list[Output]:
    return _given(c, shape)


@shape_function("AvgPoolGrad")
def _average_back(c: Inference, shape: Any, windows: Windows) -> list[Output]:
    return _given(c, shape)


def _given(c: Inference, shape: Any) -> list[Output]:
    dims = lengths(shape)
    if dims is None:
        return c.one((None,) * 4)
    if len(dims) != 4:
        c.refuse(f"Shape must be rank 4 but is rank {len(dims)}")
    return c.one(dims)


@shape_function("MaxPoolGrad")
def _max_back(c: Inference, windows: Windows) -> list[Output]:
    return c.one(c.ranked(0, 4))


@shape_function("MaxPoolGradGrad")
def _picked(c: Inference, windows: Windows) -> list[Output]:
    return c.one(c.ranked(1, 4))


__all__: list[str] = []
