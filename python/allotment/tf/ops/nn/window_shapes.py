"""Shapes of images and of windows over them, as far as a graph knows them."""

from typing import Any

from allotment.tf.ops.inference.shape_functions import Inference, Output, lengths
from allotment.tf.ops.nn.windows import Windows

#: Lengths of the vertical and the horizontal axis.
Size = tuple[int | None, int | None]
#: Batch, height, width and channels.
Images = tuple[int | None, int | None, int | None, int | None]


def images_shape(c: Inference, index: int, windows: Windows) -> Images:
    """Batch, height, width and channels of an input that is images.

    Raises:
        ValueError: It has not four axes.
    """
    batch, first, second, third = c.ranked(index, 4)
    return (batch, second, third, first) if windows.channels_first else (batch, first, second, third)


def as_given(images: Images, windows: Windows) -> Images:
    """The shape of images with the channels where the caller has them."""
    batch, height, width, channels = images
    return (batch, channels, height, width) if windows.channels_first else images


def window_counts(c: Inference, size: Size, window: Size, windows: Windows) -> Size:
    """Return the number of windows along each axis.

    Raises:
        ValueError: Not even one has a place.
    """
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


def images_as_requested(c: Inference, shape: Any, windows: Windows) -> list[Output]:
    """One output of the shape that the first argument says, which must have four axes.

    Raises:
        ValueError: It has not.
    """
    dims = lengths(shape)
    if dims is None:
        return c.one((None,) * 4)
    if len(dims) != 4:
        c.refuse(f"Shape must be rank 4 but is rank {len(dims)}")
    return c.one(dims)


__all__ = ["as_given", "images_as_requested", "images_shape", "window_counts"]
