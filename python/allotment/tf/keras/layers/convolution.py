"""The convolution layer for images."""

from typing import Any

from allotment.tf.keras.engine.arguments import channels_first, padding_argument, pair, positive
from allotment.tf.keras.engine.calls import calls
from allotment.tf.keras.engine.input_spec import InputSpec
from allotment.tf.keras.engine.symbolic import Shape
from allotment.tf.keras.layers.bases import KernelLayer
from allotment.tf.ops.nn.convolution import conv2d
from allotment.tf.ops.nn.layers import bias_add
from allotment.tf.tensors.tensor import EagerTensor


class Conv2D(KernelLayer):
    """Convolution of images. As ``keras.layers.Conv2D``.

    Args:
        filters: The number of filters, which is that of output channels.
        kernel_size: Height and width of a filter, as one number or two.
        strides: The strides, as one number or two.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"`` unless ``"channels_first"``.
        dilation_rate: The distance between the elements under a filter, as one number or two.
        groups: The number of groups of channels and filters.
        activation: A function, or its name.
        use_bias: Whether to add a bias to each channel.
        kernel_initializer: The initializer of the filters, or its name.
        bias_initializer: The initializer of the bias, or its name.
        kernel_regularizer: The regularizer of the kernel, or its name.
        bias_regularizer: The regularizer of the bias, or its name.
        activity_regularizer: The regularizer of the outputs, or its name.
        kernel_constraint: A projection of the filters that optimizers apply, or its name.
        bias_constraint: A projection of the bias that optimizers apply, or its name.
        **kwargs: Arguments of ``Layer``.

    Raises:
        ValueError: An invalid argument.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = (1, 1),
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            activation,
            use_bias,
            (kernel_initializer, kernel_regularizer, kernel_constraint),
            (bias_initializer, bias_regularizer, bias_constraint),
            activity_regularizer=activity_regularizer,
            **kwargs,
        )
        self.filters, self.groups = positive(filters, "filters"), positive(groups, "groups")
        if self.filters % self.groups:
            raise ValueError(
                "The number of filters must be evenly divisible by the number of groups. "
                f"Received: groups={groups}, filters={filters}."
            )
        self.kernel_size = pair(kernel_size, "kernel_size")
        self.strides = pair(strides, "strides")
        self.dilation_rate = pair(dilation_rate, "dilation_rate")
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(
                "`strides > 1` not supported in conjunction with `dilation_rate > 1`. "
                f"Received: strides={strides} and dilation_rate={dilation_rate}"
            )
        self.padding = padding_argument(padding)
        self.channels_first = channels_first(data_format)
        self.input_spec = InputSpec(min_ndim=4)

    def build(self, input_shape: Shape) -> None:
        """Make the filters and the bias.

        Raises:
            ValueError: The channels are not known, or cannot be divided into the groups.
        """
        axis = 1 if self.channels_first else -1
        channels = input_shape[axis]
        if channels is None:
            raise ValueError(
                f"The channel dimension of the inputs should be defined. Received: {input_shape}"
            )
        if channels % self.groups:
            raise ValueError(
                "The number of input channels must be evenly divisible by the number of groups. "
                f"Received: groups={self.groups}, channels={channels}."
            )
        self._make_kernel((*self.kernel_size, channels // self.groups, self.filters))
        self.input_spec = InputSpec(ndim=4, axes={axis: channels})
        self.built = True

    def call(self, inputs: EagerTensor) -> EagerTensor:
        """Compute the output."""
        if inputs._dtype is not self.kernel.dtype:
            raise ValueError(
                f"Layer {self.name!r} convolves {self.dtype}, and its input is {inputs._dtype.name}: cast it first"
            )
        if self.padding == "VALID" and not calls.tracing:
            # Raises if the image is smaller than the filter.
            self.compute_output_shape(inputs._array.shape)
        form = "NCHW" if self.channels_first else "NHWC"
        outputs = conv2d(inputs, self.kernel, self.strides, self.padding, form, self.dilation_rate)
        if self.bias is not None:
            outputs = bias_add(outputs, self.bias, form)
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the shape of the output.

        Raises:
            ValueError: The image is smaller than the filter.
        """
        spans = tuple(
            (size - 1) * rate + 1 for size, rate in zip(self.kernel_size, self.dilation_rate, strict=True)
        )
        return windows_of(input_shape, spans, self.strides, self.padding, self.channels_first, self.filters)


def windows_of(
    input_shape: Shape,
    spans: tuple[int, ...],
    strides: tuple[int, int],
    padding: str,
    first: bool,
    channels: int | None = None,
) -> Shape:
    """Return the output shape of a sliding window; with ``channels``, their number changes.

    Raises:
        ValueError: The image is smaller than the window.
    """
    if first:
        batch, depth, *image = input_shape
    else:
        batch, *image, depth = input_shape
    counts: list[int | None] = []
    for length, span, stride in zip(image, spans, strides, strict=True):
        counts.append(
            None if length is None else -(-(length if padding == "SAME" else length - span + 1) // stride)
        )
    if any(count is not None and count <= 0 for count in counts):
        raise ValueError(
            f"Computed output size would be zero or negative. Received: `inputs.shape={input_shape}`, "
            f"`window={spans}`, `strides={strides}`, `padding={padding.lower()}`."
        )
    depth = depth if channels is None else channels
    return (batch, depth, *counts) if first else (batch, *counts, depth)


__all__ = ["Conv2D", "windows_of"]
