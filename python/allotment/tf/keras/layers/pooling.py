"""Pooling layers for images."""

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
    """The base of layers that reduce each window of each channel to a number."""

    _keeps_dtype = True
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
        """Return the shape of the output.

        Raises:
            ValueError: The image is smaller than the window.
        """
        return windows_of(input_shape, self.pool_size, self.strides, self.padding, self.channels_first)


class MaxPooling2D(_Pooling2D):
    """The maximum of each window. As ``keras.layers.MaxPooling2D``.

    Args:
        pool_size: Height and width of a window, as one number or two.
        strides: The strides, as one number or two; the size of the window if not given.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"`` unless ``"channels_first"``.
        **kwargs: Arguments of ``Layer``.
    """

    pool = staticmethod(max_pool2d)


class AveragePooling2D(_Pooling2D):
    """The mean of each window. As ``keras.layers.AveragePooling2D``; see ``MaxPooling2D``."""

    def __init__(self, pool_size: Any, *args: Any, **kwargs: Any) -> None:
        # As in Keras, ``pool_size`` has no default.
        super().__init__(pool_size, *args, **kwargs)

    pool = staticmethod(avg_pool2d)


class GlobalAveragePooling2D(Layer):
    """The mean of each channel. As ``keras.layers.GlobalAveragePooling2D``.

    Args:
        data_format: ``"channels_last"`` unless ``"channels_first"``.
        keepdims: Whether to keep height and width, with length 1.
        **kwargs: Arguments of ``Layer``.
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
        """Return the shape of samples and channels."""
        kept = (1 if axis in self.axes else length for axis, length in enumerate(input_shape))
        if self.keepdims:
            return tuple(kept)
        return tuple(length for axis, length in enumerate(input_shape) if axis not in self.axes)


__all__ = ["AveragePooling2D", "GlobalAveragePooling2D", "MaxPooling2D"]
