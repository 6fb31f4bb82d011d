"""Layers of TensorFlow 1 with a trained kernel and bias: ``dense`` and ``conv2d``."""

from collections.abc import Callable
from typing import Any, NamedTuple

from allotment.tf.compat.layers.arguments import (
    float_tensor,
    format_argument,
    layer_scope,
    padding_argument,
    pair_argument,
    variable_maker,
)
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.shapes import shape as shape_of
from allotment.tf.ops.linalg.products import matmul
from allotment.tf.ops.linalg.tensor_products import tensordot
from allotment.tf.ops.nn.convolution import conv2d as convolve
from allotment.tf.ops.nn.layers import bias_add
from allotment.tf.ops.random.initializers import zeros_initializer


class _Parameter(NamedTuple):
    """The options of a kernel or bias."""

    initializer: Any
    regularizer: Any
    constraint: Any


def dense(
    inputs: Any,
    units: int,
    activation: Callable[..., Any] | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = zeros_initializer(),  # noqa: B008 - it keeps nothing
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Any:
    """Compute ``activation(inputs @ kernel + bias)`` over the last axis. As ``tf.compat.v1.layers.dense``.

    Args:
        inputs: Floats.
        units: The number of outputs.
        activation: A function of the outputs.
        use_bias: Whether to add a bias.
        kernel_initializer: The initializer of the kernel; that of the variable scope if not given.
        bias_initializer: The initializer of the bias.
        kernel_regularizer: A function of the kernel; its loss is added to ``REGULARIZATION_LOSSES``.
        bias_regularizer: The same for the bias.
        activity_regularizer: The same for the outputs; the loss is divided by the batch size.
        kernel_constraint: A projection that optimizers apply.
        bias_constraint: The same for the bias.
        trainable: Whether the variables are in ``TRAINABLE_VARIABLES``.
        name: The name of the variable scope; ``dense``, ``dense_1`` and so on if not given.
        reuse: Whether the variables exist already; see ``variable_scope``.

    Raises:
        ValueError: The last length is not known; the variables exist, or do not, contrary to ``reuse``.
        TypeError: The inputs are no floats.
    """
    tensor = float_tensor(inputs, "Dense")
    length = tensor.shape[-1] if tensor.shape.rank else None
    if length is None:
        raise ValueError(
            f"The last dimension of the inputs to `Dense` should be defined. Found `None` in {tensor.shape}."
        )
    with layer_scope(name, "dense", reuse):
        outputs = _apply(
            lambda kernel: matmul(tensor, kernel) if tensor.shape.rank == 2 else tensordot(tensor, kernel, 1),
            [length, units],
            tensor.dtype,
            trainable,
            _Parameter(kernel_initializer, kernel_regularizer, kernel_constraint),
            _Parameter(bias_initializer, bias_regularizer, bias_constraint) if use_bias else None,
        )
        return _activate(outputs, activation, activity_regularizer)


def conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = (1, 1),
    activation: Callable[..., Any] | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = zeros_initializer(),  # noqa: B008 - it keeps nothing
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Any:
    """Convolve images with filters, and apply an activation. As ``tf.compat.v1.layers.conv2d``.

    Args:
        inputs: Images, floats.
        filters: The number of filters.
        kernel_size: Height and width of a filter, as one number or two.
        strides: The strides, as one number or two.
        padding: ``"valid"`` or ``"same"``, in any case.
        data_format: ``"channels_last"`` or ``"channels_first"``.
        dilation_rate: The distance between the elements under a filter, as one number or two.
        activation: A function of the outputs.
        use_bias: Whether to add a bias to each channel.
        kernel_initializer: See ``dense``.
        bias_initializer: See ``dense``.
        kernel_regularizer: See ``dense``.
        bias_regularizer: See ``dense``.
        activity_regularizer: See ``dense``.
        kernel_constraint: See ``dense``.
        bias_constraint: See ``dense``.
        trainable: See ``dense``.
        name: See ``dense``; ``conv2d``, ``conv2d_1`` and so on if not given.
        reuse: See ``dense``.

    Raises:
        ValueError: The channels are not known; another format or padding; or as ``dense``.
        TypeError: The inputs are no floats.
    """
    tensor = float_tensor(inputs, "Conv2D")
    form = format_argument(data_format)
    channels = tensor.shape[1 if form == "NCHW" else -1] if tensor.shape.rank else None
    if channels is None:
        raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
    with layer_scope(name, "conv2d", reuse):
        steps, holes = pair_argument(strides, "strides"), pair_argument(dilation_rate, "dilation_rate")
        outputs = _apply(
            lambda kernel: convolve(tensor, kernel, steps, padding_argument(padding), form, holes),
            [*pair_argument(kernel_size, "kernel_size"), channels, filters],
            tensor.dtype,
            trainable,
            _Parameter(kernel_initializer, kernel_regularizer, kernel_constraint),
            _Parameter(bias_initializer, bias_regularizer, bias_constraint) if use_bias else None,
            form,
        )
        return _activate(outputs, activation, activity_regularizer)


def _apply(
    compute: Callable[[Any], Any],
    kernel_shape: list[int],
    dtype: Any,
    trainable: bool,
    kernel: _Parameter,
    bias: _Parameter | None,
    data_format: str = "NHWC",
) -> Any:
    """Compute with a kernel, and add a bias if there is one."""
    make = variable_maker(dtype)
    outputs = compute(make("kernel", kernel_shape, *kernel, trainable))
    if bias is None:
        return outputs
    return bias_add(outputs, make("bias", kernel_shape[-1:], *bias, trainable), data_format)


def _activate(outputs: Any, activation: Callable[..., Any] | None, regularizer: Any) -> Any:
    """Apply an activation, and add the loss of a regularizer of outputs to the collection of such losses."""
    if activation is not None:
        outputs = activation(outputs)
    if regularizer is not None:
        loss = regularizer(outputs) / cast(shape_of(outputs)[0], outputs.dtype)
        get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return outputs


__all__ = ["conv2d", "dense"]
