"""Base classes of layers: with a kernel and a bias, with a scale and an offset, and with unchanged shapes."""

from collections.abc import Sequence
from typing import Any

from allotment.tf.keras import activations, constraints, initializers, regularizers
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.ops.array.layout import reshape
from allotment.tf.variables.variable import Variable


class SameShapeLayer(Layer):
    """A layer whose output has the shape of its input."""

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the input's shape."""
        return input_shape


class KernelLayer(Layer):
    """A layer with a kernel, a bias and an activation; see ``Dense`` for the arguments."""

    def __init__(
        self,
        activation: Any,
        use_bias: bool,
        kernel: tuple[Any, Any, Any],
        bias: tuple[Any, Any, Any],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer, self.bias_initializer = (
            initializers.get(kernel[0]),
            initializers.get(bias[0]),
        )
        self.kernel_regularizer, self.bias_regularizer = (
            regularizers.get(kernel[1]),
            regularizers.get(bias[1]),
        )
        self.kernel_constraint, self.bias_constraint = constraints.get(kernel[2]), constraints.get(bias[2])
        self.bias: Variable | None = None

    def _make_kernel(self, shape: Sequence[int | None]) -> None:
        """Make the kernel, and the bias, whose length is the last of the kernel."""
        self.kernel = self.add_weight(
            shape,
            self.kernel_initializer,
            name="kernel",
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        if self.use_bias:
            self.bias = self.add_weight(
                shape[-1:],
                self.bias_initializer,
                name="bias",
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )


class NormalizationLayer(SameShapeLayer):
    """A layer that multiplies by ``gamma`` and adds ``beta``; see ``LayerNormalization`` for the arguments."""

    def __init__(
        self,
        epsilon: float,
        center: bool,
        scale: bool,
        beta: tuple[Any, Any, Any],
        gamma: tuple[Any, Any, Any],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.epsilon, self.center, self.scale = epsilon, center, scale
        self.beta_initializer, self.gamma_initializer = initializers.get(beta[0]), initializers.get(gamma[0])
        self.beta_regularizer, self.gamma_regularizer = regularizers.get(beta[1]), regularizers.get(gamma[1])
        self.beta_constraint, self.gamma_constraint = constraints.get(beta[2]), constraints.get(gamma[2])
        self.gamma: Variable | None = None
        self.beta: Variable | None = None
        #: The shape in which the variables broadcast to the input, if it is not their own.
        self._broadcast_shape: list[Any] | None = None

    def _make_scale_and_offset(self, shape: Sequence[int | None]) -> None:
        if self.scale:
            self.gamma = self.add_weight(
                shape,
                self.gamma_initializer,
                name="gamma",
                regularizer=self.gamma_regularizer,
                constraint=self.gamma_constraint,
            )
        if self.center:
            self.beta = self.add_weight(
                shape,
                self.beta_initializer,
                name="beta",
                regularizer=self.beta_regularizer,
                constraint=self.beta_constraint,
            )

    def _broadcast(self, value: Any) -> Any:
        return (
            value if value is None or self._broadcast_shape is None else reshape(value, self._broadcast_shape)
        )


__all__ = ["KernelLayer", "NormalizationLayer", "SameShapeLayer"]
