"""Batch normalization of TensorFlow 1, whose moving averages a program updates itself."""

from collections.abc import Sequence
from typing import Any, Final

from allotment.tf.compat.layers.arguments import float_tensor, layer_scope, variable_maker
from allotment.tf.dispatch import thread
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph
from allotment.tf.ops.array.array import cast, is_tensor
from allotment.tf.ops.array.layout import reshape
from allotment.tf.ops.array.shapes import shape as shape_of
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.math.arithmetic import multiply, subtract
from allotment.tf.ops.nn.layers import batch_normalization as normalize
from allotment.tf.ops.nn.layers import moments
from allotment.tf.ops.random.initializers import ones_initializer, zeros_initializer

#: The smallest value that TensorFlow's fused kernel adds to the variance.
_LEAST_EPSILON: Final = 1.001e-5


def batch_normalization(
    inputs: Any,
    axis: Any = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = zeros_initializer(),  # noqa: B008 - it keeps nothing
    gamma_initializer: Any = ones_initializer(),  # noqa: B008 - it keeps nothing
    moving_mean_initializer: Any = zeros_initializer(),  # noqa: B008 - it keeps nothing
    moving_variance_initializer: Any = ones_initializer(),  # noqa: B008 - it keeps nothing
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,  # noqa: ARG001 - TensorFlow's signature
    fused: bool | None = None,
    virtual_batch_size: Any = None,
    adjustment: Any = None,
) -> Any:
    """Normalize channels to mean 0 and variance 1 over a batch. As ``tf.compat.v1.layers.batch_normalization``.

    In training, mean and variance are those of the batch, and operations that update the moving averages are added to
    the collection ``UPDATE_OPS``, which the program has to run. Otherwise they are the moving averages.

    Args:
        inputs: Floats.
        axis: The axis of the channels.
        momentum: The factor of the moving averages in each update.
        epsilon: Added to the variance.
        center: Whether to add ``beta`` to each channel.
        scale: Whether to multiply each channel by ``gamma``.
        beta_initializer: The initializer of ``beta``.
        gamma_initializer: The initializer of ``gamma``.
        moving_mean_initializer: The initializer of the moving mean.
        moving_variance_initializer: The initializer of the moving variance.
        beta_regularizer: A function of ``beta`` that returns a loss.
        gamma_regularizer: A function of ``gamma`` that returns a loss.
        beta_constraint: A projection that optimizers apply.
        gamma_constraint: A projection that optimizers apply.
        training: Whether in training, as a bool or a bool tensor.
        trainable: Whether ``beta`` and ``gamma`` are in ``TRAINABLE_VARIABLES``.
        name: See ``dense``; ``batch_normalization`` and so on if not given.
        reuse: See ``dense``.
        renorm: Not offered.
        renorm_clipping: Not offered.
        renorm_momentum: Has no effect.
        fused: Whether the moving variance is that of the population, as in TensorFlow's fused kernel: for images
            unless ``False``.
        virtual_batch_size: Not offered.
        adjustment: Not offered.

    Raises:
        ValueError: The channels are not known; or as ``dense``.
        TypeError: The inputs are no floats.
        NotImplementedError: An argument is not offered.
    """
    for argument, value in (
        *(("renorm", renorm or None), ("renorm_clipping", renorm_clipping)),
        *(("virtual_batch_size", virtual_batch_size), ("adjustment", adjustment)),
    ):
        if value is not None:
            raise NotImplementedError(f"batch_normalization: `{argument}` is not offered, leave it out")
    tensor = float_tensor(inputs, "BatchNormalization")
    rank = tensor.shape.rank
    if rank is None:
        raise ValueError(f"Input has undefined rank: {tensor}")
    channel = (axis[0] if isinstance(axis, list | tuple) else axis) % rank
    length = tensor.shape[channel]
    if length is None:
        raise ValueError(f"Input has undefined `axis` dimension. Received input with shape {tensor.shape}.")
    with layer_scope(name, "batch_normalization", reuse):
        make = variable_maker(tensor.dtype)
        gamma = beta = None
        if scale:
            gamma = make("gamma", [length], gamma_initializer, gamma_regularizer, gamma_constraint, trainable)
        if center:
            beta = make("beta", [length], beta_initializer, beta_regularizer, beta_constraint, trainable)
        kept = (
            make("moving_mean", [length], moving_mean_initializer, None, None, False),
            make("moving_variance", [length], moving_variance_initializer, None, None, False),
        )
        is_fused = rank == 4 and channel in (1, 3) and fused is not False
        axes = [each for each in range(rank) if each != channel]
        broadcastable = None if channel == rank - 1 else [-1, *[1] * (rank - 1 - channel)]
        used: Sequence[Any] = kept
        if is_tensor(training) or training:
            seen = moments(tensor, axes)
            used = [_batch_or_moving(training, own, other) for own, other in zip(seen, kept, strict=True)]
            if is_fused:
                seen = (seen[0], _population_variance(seen[1], tensor, channel))
            _update_averages(kept, seen, momentum, training)
        mean, variance, offset, factor = (
            None if each is None else each if broadcastable is None else reshape(each, broadcastable)
            for each in (*used, beta, gamma)
        )
        least = max(epsilon, _LEAST_EPSILON) if is_fused else epsilon
        return normalize(tensor, mean, variance, offset, factor, least)


def _batch_or_moving(training: Any, own: Any, kept: Any) -> Any:
    """Return the batch's value in training, otherwise the moving average."""
    return where(training, own, to_tensor(kept)) if is_tensor(training) else own


def _population_variance(variance: Any, tensor: Any, channel: int) -> Any:
    """Return the variance of the population that a batch is a sample of."""
    elements = cast(shape_of(tensor), variance.dtype)
    count: Any = 1.0
    for axis in range(tensor.shape.rank):
        if axis != channel:
            count = multiply(elements[axis], count)
    return multiply(variance, count / where(count > 1, subtract(count, 1.0), count))


def _update_averages(kept: Sequence[Any], seen: Sequence[Any], momentum: float, training: Any) -> None:
    """Update the moving averages: in a graph by operations in ``UPDATE_OPS``, in eager mode at once."""
    for variable, value in zip(kept, seen, strict=True):
        share: Any = cast(1 - momentum, variable.dtype)
        if is_tensor(training):
            share = multiply(share, cast(training, variable.dtype))
        change = multiply(subtract(variable, value), share)
        update = variable.assign_sub(change, name="AssignMovingAvg", read_value=False)
        if thread.state.graph is not None:
            get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, update)


__all__ = ["batch_normalization"]
