"""Windows that slide over the two axes of images: how many there are, and what is padded."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from allotment import errors
from allotment.tf.ops import faults
from allotment.tf.ops.arguments.integers import attribute_argument, has_axes, kernel_error, numbers_argument
from allotment.tf.ops.arrays import Array, full, size_fault
from allotment.tf.tensors.tensor import Tensor


class Windows(NamedTuple):
    """Size, strides and padding of sliding windows; each pair is of the vertical and the horizontal axis."""

    size: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    #: ``"SAME"``, ``"VALID"``, or what is added before and after on each axis.
    padding: str | tuple[tuple[int, int], tuple[int, int]]
    #: Whether the channels come before the images' axes: ``NCHW``.
    channels_first: bool

    def of_filters(self, shape: Sequence[int]) -> "Windows":
        """The windows of filters of a shape, which a graph may not have known; filters without elements keep them."""
        size = (shape[0], shape[1])
        return self if size == self.size or 0 in size else self._replace(size=size)

    def spans(self) -> list[int]:
        """Return the lengths that a window covers, holes included."""
        return [(size - 1) * dilation + 1 for size, dilation in zip(self.size, self.dilations, strict=True)]

    def pads(self, lengths: Sequence[int]) -> list[tuple[int, int]]:
        """Return the padding before and after images of these lengths."""
        if self.padding == "VALID":
            return [(0, 0), (0, 0)]
        if self.padding != "SAME":
            return list(self.padding)  # type: ignore[arg-type]
        pads = []
        for length, span, stride in zip(lengths, self.spans(), self.strides, strict=True):
            missing = max((-(-length // stride) - 1) * stride + span - length, 0)
            # An odd one goes behind.
            pads.append((missing // 2, missing - missing // 2))
        return pads

    def counts(self, lengths: Sequence[int]) -> list[int]:
        """Return the number of windows; a negative number where not even an empty result fits."""
        found = []
        for length, pad, span, stride in zip(
            lengths, self.pads(lengths), self.spans(), self.strides, strict=True
        ):
            room = length + sum(pad) - span + stride
            # TensorFlow's division rounds to zero.
            found.append(room // stride if room >= 0 else -(-room // stride))
        return found

    def channels_last(self, images: Array) -> Array:
        """A view of images with the channels behind the images' axes."""
        return np.moveaxis(images, 1, -1) if self.channels_first else images

    def image_axes(self) -> tuple[int, int]:
        """Return the two axes of images along which windows slide."""
        return (2, 3) if self.channels_first else (1, 2)

    def as_given(self, images: Array) -> Array:
        """A view of images with the channels where they came from."""
        return np.moveaxis(images, -1, 1) if self.channels_first else images

    def fault(self, images: Array) -> str | None:
        """TensorFlow's words for images that are too small, or ``None``."""
        lengths = self.channels_last(images).shape[1:3]
        for length, pad, count, span, stride in zip(
            lengths, self.pads(lengths), self.counts(lengths), self.spans(), self.strides, strict=True
        ):
            if count < 0:
                return (
                    f"Computed output size would be negative: {count} [input_size: {length + sum(pad)}, "
                    f"effective_filter_size: {span}, stride: {stride}]"
                )
        bordered = (length + sum(pad) for length, pad in zip(lengths, self.pads(lengths), strict=True))
        return size_fault((len(images), *bordered, self.channels_last(images).shape[-1]), images.dtype)


def padded(images: Array, pads: Sequence[tuple[int, int]], value: Any) -> Array:
    """Images with a border of a value; themselves if there is none."""
    if not any(map(any, pads)):
        return images
    batch, height, width, channels = images.shape
    (top, bottom), (left, right) = pads
    result = full(
        (batch, height + top + bottom, width + left + right, channels), value, images.dtype, like=images
    )
    result[:, top : top + height, left : left + width] = images
    return result


def placed(bordered: Array, windows: Windows, place: tuple[int, ...], counts: Sequence[int]) -> Array:
    """A view of images with their border: the elements of every window at one place of it."""
    (first, second), (rows, columns) = (
        [at * dilation for at, dilation in zip(place, windows.dilations, strict=True)],
        counts,
    )
    down, right = windows.strides
    return bordered[:, first : first + rows * down : down, second : second + columns * right : right]


#: Some images, and some of the rows of their windows.
Part = tuple[slice, slice]
#: Elements of what is computed of a part: they stay in the processor's cache.
_PART: Final = 1 << 18


def parts(images: int, rows: int, size: int) -> Iterator[Part]:
    """Divide the rows of windows of images into parts, of which each row takes a number of elements.

    A part has several images whole, or some rows of one.
    """
    rows_together = max(_PART // max(size, 1), 1)
    together = max(rows_together // max(rows, 1), 1)
    for image in range(0, images, together):
        for row in range(0, rows, rows if together > 1 else rows_together):
            yield slice(image, image + together), slice(row, row + (rows if together > 1 else rows_together))


def pair_argument(
    value: Any,
    what: str,
    channels_first: bool,
    of_others: type[errors.OpError] = errors.UnimplementedError,
) -> tuple[int, int]:
    """Two lengths from a number, two, or four of which those of batch and channels are 1.

    Raises:
        TypeError: These are no whole numbers.
        ValueError: There are other counts of numbers.
        InvalidArgumentError: One is not positive. In a graph a ``ValueError``.
        UnimplementedError: Those of batch and channels are not 1; or ``of_others``. In a graph a ``ValueError``.
    """
    numbers = _attributes(value, what)
    if len(numbers) not in (1, 2, 4):
        raise ValueError(
            f"{what} should be of length 1, 2 or 4. Received: {what}={value} of length {len(numbers)}"
        )
    if len(numbers) == 4:
        ends = (numbers[0], numbers[1 if channels_first else 3])
        if ends != (1, 1):
            raise kernel_error(
                of_others,
                f"{what} must be 1 in the batch and depth dimensions. Received: {what}={value}",
            )
        numbers = numbers[2:] if channels_first else numbers[1:3]
    if min(numbers) < 1:
        raise kernel_error(errors.InvalidArgumentError, f"{what} must be positive. Received: {what}={value}")
    return numbers[0], numbers[-1]


def _attributes(value: Any, what: str) -> tuple[int, ...]:
    if value is None:
        return (1,)
    if isinstance(value, np.ndarray | Tensor) and not has_axes(value):
        raise TypeError(f"Cannot iterate over a scalar tensor. Received: {what}={value!r}")
    listed = value if isinstance(value, list | tuple) or np.ndim(value) else [value]
    return tuple(attribute_argument(each, what) for each in listed)


def padding_argument(
    padding: Any, channels_first: bool, op: str
) -> str | tuple[tuple[int, int], tuple[int, int]]:
    """``"SAME"``, ``"VALID"``, or explicit pads of all four axes where an operation has them.

    Raises:
        TypeError: It is neither a text nor pads, or there are pads that are no whole numbers.
        InvalidArgumentError: It is another text.
        ValueError: These are no pads of images.
    """
    explicit = op != "AvgPool"
    if not isinstance(padding, str | bytes) and not (explicit and isinstance(padding, list | tuple)):
        raise TypeError(f"Expected string for argument 'padding' not {padding}.")
    if isinstance(padding, str | bytes):
        text = padding.decode() if isinstance(padding, bytes) else padding
        if text == "EXPLICIT" and op.startswith("Conv2D"):
            raise ValueError(
                "'EXPLICIT' is not a valid value for `padding`: explicit pads are a list of pairs"
            )
        if text == "EXPLICIT" and explicit:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"explicit_paddings attribute must contain 8 values, but got: 0{faults.tail(op, None)}",
            )
        return _one_of(op, "padding", text, ("SAME", "VALID", "EXPLICIT") if explicit else ("SAME", "VALID"))
    pads = [numbers_argument(each, "padding") for each in padding]
    others, images = (pads[:2], pads[2:]) if channels_first else (pads[::3], pads[1:3])
    if len(pads) != 4 or any(len(each) != 2 or min(each) < 0 for each in pads) or any(map(any, others)):
        raise ValueError(
            'padding must be "SAME", "VALID", or a list of four pairs of numbers that are not negative, with none in '
            f"the batch and depth dimensions. Received: padding={padding}"
        )
    return (images[0][0], images[0][1]), (images[1][0], images[1][1])


def _one_of(op: str, attribute: str, text: str, allowed: tuple[str, ...]) -> str:
    if text in allowed:
        return text
    raise faults.not_listed(op, attribute, text, allowed, None)


def channels_first_argument(data_format: Any, op: str) -> bool:
    """Whether a data format is ``NCHW`` and not ``NHWC``.

    Raises:
        TypeError: It is no text.
        InvalidArgumentError: It is neither.
    """
    if data_format is None:
        return False
    if not isinstance(data_format, str):
        raise TypeError(f"Expected string for argument 'data_format' not {data_format}.")
    return _one_of(op, "data_format", data_format, ("NHWC", "NCHW")) == "NCHW"


def _error_of_strides(op: str) -> type[errors.OpError]:
    """The error of strides over images or channels: what a kernel is not written for, or will not take."""
    return errors.InvalidArgumentError if op.startswith("Depthwise") else errors.UnimplementedError


def windows_argument(
    size: Any, strides: Any, dilations: Any, padding: Any, data_format: Any, op: str
) -> Windows:
    """Put windows together from the arguments of convolution or pooling.

    Raises:
        ValueError: One of them is of no use; the text names it.
        InvalidArgumentError: There is no such padding or data format.
    """
    first = channels_first_argument(data_format, op)
    return Windows(
        pair_argument(size, "ksize", first),
        pair_argument(strides, "strides", first, _error_of_strides(op)),
        pair_argument(1 if dilations is None else dilations, "dilations", first),
        padding_argument(padding, first, op),
        first,
    )
