"""Pooling of images as layers."""

from collections.abc import Callable
from typing import Any, ClassVar

from allotment.tf.keras.engine.arguments import channels_first, padding_argument, pair
from allotment.tf.keras.engine.input_spec import InputSpec
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.engine.symbolic import Shape
from allotment.tf.keras.layers.convolution import windows_of
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.nn.pooling import avg_pool2d, max_pool2d
from allotment.tf.ops.reduction.reduce import reduce_mean
from allotment.tf.tensors.dtype import float32
from allotment.tf.tensors.tensor import EagerTensor


class _Pooling2D(Layer):
    """One number for each window of each channel."""

    keeps_dtype = True
    pool: ClassVar[Callable[..., EagerTensor]]

    def __init__(
        self,
        pool_size: Any = (2, 2),
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pool_size = pair(pool_size, "pool_size")
        self.strides = self.pool_size if strides is None else pair(strides, "strides")
        self.padding = padding_argument(padding)
        self.channels_first = channels_first(data_format)
        self.input_spec = InputSpec(ndim=4)
        self.built = True

    def call(self, inputs: EagerTensor) -> EagerTensor:
        """Compute the output."""
        form = "NCHW" if self.channels_first else "NHWC"
        return type(self).pool(inputs, self.pool_size, self.strides, self.padding, form)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """The number of windows down and across.

        Raises:
            ValueError: There is no window.
        """
        return windows_of(input_shape, self.pool_size, self.strides, self.padding, self.channels_first)


class MaxPooling2D(_Pooling2D):
    """The largest element of each window. As ``keras.layers.MaxPooling2D``.

    Args:
        pool_size: Height and width of a window, as one number or two.
        strides: How far it moves, as one number or two; its own size if not given.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"`` unless ``"channels_first"``.
        **kwargs: Those of every layer.
    """

    pool = staticmethod(max_pool2d)


class AveragePooling2D(_Pooling2D):
    """The mean of each window. As ``keras.layers.AveragePooling2D``; see ``MaxPooling2D``."""

    def __init__(self, pool_size: Any, *args: Any, **kwargs: Any) -> None:
        # Without a size of the window: Keras has one for the largest element alone.
        super().__init__(pool_size, *args, **kwargs)

    pool = staticmethod(avg_pool2d)


class GlobalAveragePooling2D(Layer):
    """The mean of each channel. As ``keras.layers.GlobalAveragePooling2D``.

    Args:
        data_format: ``"channels_last"`` unless ``"channels_first"``.
        keepdims: Whether height and width stay, with length 1.
        **kwargs: Those of every layer.
    """

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axes = (2, 3) if channels_first(data_format) else (1, 2)
        self.keepdims = keepdims
        self.input_spec = InputSpec(ndim=4)
        self.built = True

    def call(self, inputs: EagerTensor) -> EagerTensor:
        """Compute the output."""
        if not inputs._dtype.is_floating:
            inputs = cast(inputs, float32)
        return reduce_mean(inputs, self.axes, keepdims=self.keepdims)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """The samples and the channels."""
        kept = (1 if axis in self.axes else length for axis, length in enumerate(input_shape))
        if self.keepdims:
            return tuple(kept)
        return tuple(length for axis, length in enumerate(input_shape) if axis not in self.axes)


__all__ = ["AveragePooling2D", "GlobalAveragePooling2D", "MaxPooling2D"]
