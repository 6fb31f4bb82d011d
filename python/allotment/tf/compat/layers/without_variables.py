"""Layers of TensorFlow 1 without variables: pooling, ``flatten`` and ``dropout``."""

from collections.abc import Callable
from typing import Any

from allotment.tf.compat.layers.arguments import format_argument, layer_scope, padding_argument, pair_argument
from allotment.tf.ops.array.array import cast, identity, is_tensor
from allotment.tf.ops.array.layout import reshape, transpose
from allotment.tf.ops.array.shapes import shape as shape_of
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.arithmetic import multiply
from allotment.tf.ops.nn.layers import dropout as drop
from allotment.tf.ops.nn.pooling import avg_pool, max_pool
from allotment.tf.tensors.tensor_shape import TensorShape


def max_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Any:
    """Return the maxima of windows of images. As ``tf.compat.v1.layers.max_pooling2d``.

    Args:
        inputs: Images.
        pool_size: Height and width of a window, as one number or two.
        strides: The strides, as one number or two.
        padding: ``"valid"`` or ``"same"``, in any case.
        data_format: ``"channels_last"`` or ``"channels_first"``.
        name: The name of the scope, ``max_pooling2d`` if not given.

    Raises:
        ValueError: Another format or padding, or sizes that are no numbers.
    """
    return _pool(max_pool, "max_pooling2d", inputs, pool_size, strides, padding, data_format, name)


def average_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Any:
    """Return the means of windows of images; see ``max_pooling2d``. As ``tf.compat.v1.layers.average_pooling2d``."""
    return _pool(avg_pool, "average_pooling2d", inputs, pool_size, strides, padding, data_format, name)


def _pool(
    pool: Callable[..., Any],
    default: str,
    inputs: Any,
    size: Any,
    strides: Any,
    padding: str,
    data_format: str,
    name: str | None,
) -> Any:
    window, steps = pair_argument(size, "pool_size"), pair_argument(strides, "strides")
    with layer_scope(name, default, None):
        return pool(to_tensor(inputs), window, steps, padding_argument(padding), format_argument(data_format))


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Any:
    """Reshape each sample to one axis. As ``tf.compat.v1.layers.flatten``.

    Args:
        inputs: Samples along the first axis.
        name: The name of the scope, ``flatten`` if not given.
        data_format: ``"channels_first"`` makes channels the last axis first.

    Raises:
        ValueError: Another format.
    """
    form = format_argument(data_format)
    with layer_scope(name, "flatten", None):
        tensor = to_tensor(inputs)
        rank = tensor.shape.rank
        if form == "NCHW" and rank is not None and rank > 2:
            tensor = transpose(tensor, [0, *range(2, rank), 1])
        dims = tensor.shape.dims
        if dims is not None and None not in dims[1:]:
            # With no samples, ``reshape`` cannot infer a length.
            length = TensorShape(dims[1:]).num_elements()
            return reshape(tensor, [-1 if length or dims[0] is None else dims[0], length])
        return reshape(tensor, [shape_of(tensor)[0], -1])


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: Any = None,
    training: Any = False,
    name: str | None = None,
) -> Any:
    """Set elements to zero at random in training. As ``tf.compat.v1.layers.dropout``.

    Args:
        inputs: Floats.
        rate: The probability of setting an element to zero.
        noise_shape: A shape that broadcasts to that of the inputs.
        seed: The seed of the random numbers.
        training: Whether in training, as a bool or a bool tensor.
        name: The name of the scope, ``dropout`` if not given.
    """
    with layer_scope(name, "dropout", None):
        tensor = to_tensor(inputs)
        if not is_tensor(training):
            return drop(tensor, rate, noise_shape, seed) if training else identity(tensor)
        share = multiply(cast(training, tensor.dtype), cast(rate, tensor.dtype))
        return drop(tensor, share, noise_shape, seed)


__all__ = ["average_pooling2d", "dropout", "flatten", "max_pooling2d"]
