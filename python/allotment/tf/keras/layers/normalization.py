"""Layers that give their input a mean and a spread."""

from typing import Any

from allotment.tf.keras import initializers, regularizers
from allotment.tf.keras.engine.arguments import refuse
from allotment.tf.keras.engine.input_spec import InputSpec
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.engine.precision import widened
from allotment.tf.keras.engine.replicas import (
    assign_alike,
    mean_over_replicas,
    number_of_replicas,
    replica,
    sum_over_replicas,
)
from allotment.tf.keras.engine.symbolic import Shape
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.array.layout import reshape
from allotment.tf.ops.math.arithmetic import multiply, squared_difference
from allotment.tf.ops.nn.layers import batch_normalization, moments
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.tensors.dtype import float32, float64
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.variables.variable import Variable


class BatchNormalization(Layer):
    """Channels with mean 0 and variance 1 over a batch, scaled and shifted. As ``keras.layers.BatchNormalization``.

    In training, mean and variance are those of the batch: where there are several replicas of each one's part, or of
    all of it if ``synchronized``. Else they are those of the batches seen, each weighted less the longer ago it was.

    Args:
        axis: The axis of the channels.
        momentum: What is kept of mean and variance with each batch.
        epsilon: Added to the variance.
        center: Whether something is added to each channel at the end.
        scale: Whether each channel is multiplied by something before.
        beta_initializer: What makes the first values added, or its name.
        gamma_initializer: What makes the first factors, or its name.
        moving_mean_initializer: What makes the first mean, or its name.
        moving_variance_initializer: What makes the first variance, or its name.
        beta_regularizer: What gives a loss for the values added, or its name.
        gamma_regularizer: What gives a loss for the factors, or its name.
        synchronized: Whether replicas have one mean and variance.
        **kwargs: Those of every layer; constraints and renormalization are not offered.
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
        synchronized: bool = False,
        **kwargs: Any,
    ) -> None:
        _refuse_extras(self, kwargs, "renorm")
        super().__init__(**kwargs)
        self.axis, self.momentum, self.epsilon = axis, momentum, epsilon
        self.center, self.scale, self.synchronized = center, scale, synchronized
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)
        self.beta_regularizer = regularizers.get(beta_regularizer)
        self.gamma_regularizer = regularizers.get(gamma_regularizer)
        self.moving_mean_initializer = initializers.get(moving_mean_initializer)
        self.moving_variance_initializer = initializers.get(moving_variance_initializer)
        self.gamma: Variable | None = None
        self.beta: Variable | None = None

    def build(self, input_shape: Shape) -> None:
        """Make the variables."""
        rank = len(input_shape)
        length = input_shape[self.axis]
        channel = self.axis % rank
        shape = (length,)
        if self.scale:
            self.gamma = self.add_weight(
                shape, self.gamma_initializer, name="gamma", regularizer=self.gamma_regularizer
            )
        if self.center:
            self.beta = self.add_weight(
                shape, self.beta_initializer, name="beta", regularizer=self.beta_regularizer
            )
        self.moving_mean = self.add_weight(
            shape, self.moving_mean_initializer, name="moving_mean", trainable=False
        )
        self.moving_variance = self.add_weight(
            shape, self.moving_variance_initializer, name="moving_variance", trainable=False
        )
        assert length is not None, "a variable has no unknown length"
        self._reduced = [axis for axis in range(rank) if axis != channel]
        #: How the variables are shaped to meet the channels, if those are not at the end.
        self._meeting = None if channel == rank - 1 else [-1, *[1] * (rank - 1 - channel)]
        self.input_spec = InputSpec(ndim=rank, axes={channel: length})
        self.built = True

    def call(self, inputs: EagerTensor, training: bool | None = None) -> EagerTensor:
        """Compute the output; in training, remember mean and variance."""
        if not inputs._dtype.is_floating:
            # Of integers in single precision, whatever the type of the layer.
            inputs = cast(inputs, float32)
        samples = inputs._array.shape[0]
        mean, variance = (
            cast(kept.value(), inputs._dtype) for kept in (self.moving_mean, self.moving_variance)
        )
        if training and self.trainable:
            if self.synchronized and replica() is not None and number_of_replicas() > 1:
                mean, variance = self._moments_of_all(inputs)
            elif samples:
                # Of no samples, as the last replica may get, there is no mean.
                mean, variance = moments(inputs, self._reduced)
            self._remember(mean, variance, samples)
        offset, scale = (
            None if each is None else self._met(cast(each, inputs._dtype)) for each in (self.beta, self.gamma)
        )
        found = batch_normalization(inputs, self._met(mean), self._met(variance), offset, scale, self.epsilon)
        return cast(found, self.dtype)

    def _moments_of_all(self, inputs: EagerTensor) -> tuple[EagerTensor, EagerTensor]:
        """The mean and the variance of what all replicas have; gradients go through it."""
        values = widened(inputs)
        count = inputs._array.size / max(inputs._array.shape[self.axis], 1)
        total, number = sum_over_replicas([reduce_sum(values, self._reduced), constant(count)])
        share = 1 / float(number)
        mean = multiply(total, share)
        # Not the mean of squares less the square of the mean: where that is large, nothing would be left of both.
        squares = reduce_sum(squared_difference(values, self._met(mean)), self._reduced)
        variance = multiply(sum_over_replicas([squares])[0], share)
        return cast(mean, inputs._dtype), cast(variance, inputs._dtype)

    def _met(self, value: Any) -> Any:
        return value if value is None or self._meeting is None else reshape(value, self._meeting)

    def _remember(self, mean: EagerTensor, variance: EagerTensor, samples: int) -> None:
        seen = mean_over_replicas((mean, variance), samples)
        for kept, value in zip((self.moving_mean, self.moving_variance), seen, strict=True):
            old = cast(kept.value(), value._dtype)
            assign_alike(kept, cast(old * self.momentum + value * (1 - self.momentum), kept.dtype))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        return input_shape


class LayerNormalization(Layer):
    """Samples with mean 0 and variance 1, scaled and shifted. As ``keras.layers.LayerNormalization``.

    Args:
        axis: The axis or axes that mean and variance are taken over.
        epsilon: Added to the variance.
        center: Whether something is added to each element at the end.
        scale: Whether each element is multiplied by something before.
        beta_initializer: What makes the first values added, or its name.
        gamma_initializer: What makes the first factors, or its name.
        beta_regularizer: What gives a loss for the values added, or its name.
        gamma_regularizer: What gives a loss for the factors, or its name.
        **kwargs: Those of every layer; constraints are not offered.
    """

    casts_inputs = False

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
        **kwargs: Any,
    ) -> None:
        _refuse_extras(self, kwargs, "rms_scaling")
        super().__init__(**kwargs)
        self.axis = (axis,) if isinstance(axis, int) else tuple(axis)
        self.epsilon, self.center, self.scale = epsilon, center, scale
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)
        self.beta_regularizer = regularizers.get(beta_regularizer)
        self.gamma_regularizer = regularizers.get(gamma_regularizer)
        self.gamma: Variable | None = None
        self.beta: Variable | None = None

    def build(self, input_shape: Shape) -> None:
        """Make the variables."""
        rank = len(input_shape)
        shape = [input_shape[axis] for axis in self.axis]
        self._axes = sorted(axis % rank for axis in self.axis)
        if self.scale:
            self.gamma = self.add_weight(
                shape, self.gamma_initializer, name="gamma", regularizer=self.gamma_regularizer
            )
        if self.center:
            self.beta = self.add_weight(
                shape, self.beta_initializer, name="beta", regularizer=self.beta_regularizer
            )
        #: How the variables are shaped to meet the elements, if their axes are not the last ones.
        lengths = [input_shape[axis] if axis in self._axes else 1 for axis in range(rank)]
        self._meeting = None if self._axes[-1] == rank - 1 and len(self._axes) == 1 else lengths
        self.built = True

    def call(self, inputs: EagerTensor) -> EagerTensor:
        """Compute the output."""
        given = inputs._dtype
        values = inputs if given is float64 else cast(inputs, float32)
        mean, variance = moments(values, self._axes, keepdims=True)
        offset, scale = (
            None if each is None else cast(self._met(each), values._dtype) for each in (self.beta, self.gamma)
        )
        outputs = batch_normalization(values, mean, variance, offset, scale, self.epsilon)
        # Back to the type of the input first, whose precision the output has.
        return cast(cast(outputs, given), self.dtype)

    def _met(self, value: Any) -> Any:
        return value if value is None or self._meeting is None else reshape(value, self._meeting)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        return input_shape


def _refuse_extras(layer: Layer, kwargs: dict[str, Any], *names: str) -> None:
    refuse(
        layer,
        kwargs,
        "beta_constraint",
        "gamma_constraint",
        *names,
    )


__all__ = ["BatchNormalization", "LayerNormalization"]
