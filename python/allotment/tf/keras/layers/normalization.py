"""Batch and layer normalization."""

from typing import Any

from allotment.tf.keras import initializers
from allotment.tf.keras.engine.arguments import refuse
from allotment.tf.keras.engine.calls import calls
from allotment.tf.keras.engine.input_spec import InputSpec
from allotment.tf.keras.engine.precision import widened
from allotment.tf.keras.engine.replicas import (
    assign_on_replicas,
    mean_over_replicas,
    number_of_replicas,
    replica_index,
    sum_over_replicas,
)
from allotment.tf.keras.engine.symbolic import Shape
from allotment.tf.keras.layers.bases import NormalizationLayer
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.math.arithmetic import multiply, squared_difference
from allotment.tf.ops.nn.layers import batch_normalization, moments
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.tensors.dtype import float32, float64
from allotment.tf.tensors.tensor import EagerTensor


class BatchNormalization(NormalizationLayer):
    """Normalizes channels over a batch to mean 0 and variance 1. As ``keras.layers.BatchNormalization``.

    In training, mean and variance are those of the batch: of each replica's part, or of the whole batch if
    ``synchronized``. Otherwise they are moving averages.

    Args:
        axis: The axis of the channels.
        momentum: The factor of the moving averages in each update.
        epsilon: A number added to the variance.
        center: Whether to add ``beta``.
        scale: Whether to multiply by ``gamma``.
        beta_initializer: The initializer of ``beta``, or its name.
        gamma_initializer: The initializer of ``gamma``, or its name.
        moving_mean_initializer: The initializer of the moving mean, or its name.
        moving_variance_initializer: The initializer of the moving variance, or its name.
        beta_regularizer: The regularizer of ``beta``, or its name.
        gamma_regularizer: The regularizer of ``gamma``, or its name.
        beta_constraint: A projection of ``beta`` that optimizers apply, or its name.
        gamma_constraint: A projection of ``gamma`` that optimizers apply, or its name.
        synchronized: Whether replicas share mean and variance.
        **kwargs: Arguments of ``Layer``; renormalization is not offered.
    """

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 0.001,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        synchronized: bool = False,
        **kwargs: Any,
    ) -> None:
        refuse(self, kwargs, "renorm")
        super().__init__(
            epsilon,
            center,
            scale,
            (beta_initializer, beta_regularizer, beta_constraint),
            (gamma_initializer, gamma_regularizer, gamma_constraint),
            **kwargs,
        )
        self.axis, self.momentum, self.synchronized = axis, momentum, synchronized
        self.moving_mean_initializer = initializers.get(moving_mean_initializer)
        self.moving_variance_initializer = initializers.get(moving_variance_initializer)

    def build(self, input_shape: Shape) -> None:
        """Make the variables."""
        rank = len(input_shape)
        length = input_shape[self.axis]
        channel = self.axis % rank
        shape = (length,)
        self._make_scale_and_offset(shape)
        self.moving_mean = self.add_weight(
            shape, self.moving_mean_initializer, name="moving_mean", trainable=False
        )
        self.moving_variance = self.add_weight(
            shape, self.moving_variance_initializer, name="moving_variance", trainable=False
        )
        assert length is not None, "a variable has no unknown length"
        self._reduced = [axis for axis in range(rank) if axis != channel]
        self._broadcast_shape = None if channel == rank - 1 else [-1, *[1] * (rank - 1 - channel)]
        self.input_spec = InputSpec(ndim=rank, axes={channel: length})
        self.built = True

    def call(self, inputs: EagerTensor, training: bool | None = None) -> EagerTensor:
        """Compute the output; in training, update the moving averages."""
        if not inputs._dtype.is_floating:
            # Integers are normalized in single precision, whatever the type of the layer.
            inputs = cast(inputs, float32)
        samples = 1 if calls.tracing else inputs._array.shape[0]
        mean, variance = (
            cast(kept.value(), inputs._dtype) for kept in (self.moving_mean, self.moving_variance)
        )
        if training and self.trainable:
            if self.synchronized and replica_index() is not None and number_of_replicas() > 1:
                mean, variance = self._moments_of_all(inputs)
            elif samples:
                # The last replica may get no samples, which have no mean.
                mean, variance = moments(inputs, self._reduced)
            self._update_averages(mean, variance, samples)
        offset, scale = (
            None if each is None else self._broadcast(cast(each, inputs._dtype))
            for each in (self.beta, self.gamma)
        )
        found = batch_normalization(
            inputs, self._broadcast(mean), self._broadcast(variance), offset, scale, self.epsilon
        )
        return cast(found, self.dtype)

    def _moments_of_all(self, inputs: EagerTensor) -> tuple[EagerTensor, EagerTensor]:
        """Return mean and variance over all replicas, with gradients."""
        values = widened(inputs)
        count = inputs._array.size / max(inputs._array.shape[self.axis], 1)
        total, number = sum_over_replicas([reduce_sum(values, self._reduced), constant(count)])
        share = 1 / float(number)
        mean = multiply(total, share)
        # Not the mean of squares minus the square of the mean, which cancels for large means.
        squares = reduce_sum(squared_difference(values, self._broadcast(mean)), self._reduced)
        variance = multiply(sum_over_replicas([squares])[0], share)
        return cast(mean, inputs._dtype), cast(variance, inputs._dtype)

    def _update_averages(self, mean: EagerTensor, variance: EagerTensor, samples: int) -> None:
        if calls.tracing:
            return
        seen = mean_over_replicas((mean, variance), samples)
        for kept, value in zip((self.moving_mean, self.moving_variance), seen, strict=True):
            old = cast(kept.value(), value._dtype)
            assign_on_replicas(kept, cast(old * self.momentum + value * (1 - self.momentum), kept.dtype))


class LayerNormalization(NormalizationLayer):
    """Normalizes samples to mean 0 and variance 1, scales and shifts them. As ``keras.layers.LayerNormalization``.

    Args:
        axis: The axis or axes of mean and variance.
        epsilon: A number added to the variance.
        center: Whether to add ``beta``.
        scale: Whether to multiply by ``gamma``.
        beta_initializer: The initializer of ``beta``, or its name.
        gamma_initializer: The initializer of ``gamma``, or its name.
        beta_regularizer: The regularizer of ``beta``, or its name.
        gamma_regularizer: The regularizer of ``gamma``, or its name.
        beta_constraint: A projection of ``beta`` that optimizers apply, or its name.
        gamma_constraint: A projection of ``gamma`` that optimizers apply, or its name.
        **kwargs: Arguments of ``Layer``; ``rms_scaling`` is not offered.
    """

    _casts_inputs = False

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 0.001,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        refuse(self, kwargs, "rms_scaling")
        super().__init__(
            epsilon,
            center,
            scale,
            (beta_initializer, beta_regularizer, beta_constraint),
            (gamma_initializer, gamma_regularizer, gamma_constraint),
            **kwargs,
        )
        self.axis = (axis,) if isinstance(axis, int) else tuple(axis)

    def build(self, input_shape: Shape) -> None:
        """Make the variables."""
        rank = len(input_shape)
        shape = [input_shape[axis] for axis in self.axis]
        self._axes = sorted(axis % rank for axis in self.axis)
        self._make_scale_and_offset(shape)
        lengths = [input_shape[axis] if axis in self._axes else 1 for axis in range(rank)]
        self._broadcast_shape = None if self._axes[-1] == rank - 1 and len(self._axes) == 1 else lengths
        self.built = True

    def call(self, inputs: EagerTensor) -> EagerTensor:
        """Compute the output."""
        given = inputs._dtype
        values = inputs if given is float64 else cast(inputs, float32)
        mean, variance = moments(values, self._axes, keepdims=True)
        offset, scale = (
            None if each is None else cast(self._broadcast(each), values._dtype)
            for each in (self.beta, self.gamma)
        )
        outputs = batch_normalization(values, mean, variance, offset, scale, self.epsilon)
        # The output has the precision of the input, whatever the type of the layer.
        return cast(cast(outputs, given), self.dtype)


__all__ = ["BatchNormalization", "LayerNormalization"]
