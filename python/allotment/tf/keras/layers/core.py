"""Dense layers, activations and embeddings."""

from typing import Any

from allotment.tf.keras import activations, constraints, initializers, regularizers
from allotment.tf.keras.engine.arguments import positive, refuse
from allotment.tf.keras.engine.input_spec import InputSpec
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.engine.precision import promoted
from allotment.tf.keras.engine.symbolic import Shape
from allotment.tf.keras.layers.bases import KernelLayer, SameShapeLayer
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.gathering import gather
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.linalg.products import matmul
from allotment.tf.ops.linalg.tensor_products import tensordot
from allotment.tf.ops.math.arithmetic import add, subtract
from allotment.tf.ops.math.comparison import greater, less
from allotment.tf.ops.math.real import exp
from allotment.tf.ops.nn.layers import bias_add
from allotment.tf.ops.reduction.statistics import reduce_logsumexp
from allotment.tf.tensors.dtype import float16, int32, int64
from allotment.tf.tensors.tensor import EagerTensor


class Dense(KernelLayer):
    """``activation(inputs @ kernel + bias)``, over the last axis. As ``keras.layers.Dense``.

    Args:
        units: The number of outputs.
        activation: A function, or its name.
        use_bias: Whether to add a bias.
        kernel_initializer: The initializer of the kernel, or its name.
        bias_initializer: The initializer of the bias, or its name.
        kernel_regularizer: The regularizer of the kernel, or its name.
        bias_regularizer: The regularizer of the bias, or its name.
        activity_regularizer: The regularizer of the outputs, or its name.
        kernel_constraint: A projection of the kernel that optimizers apply, or its name.
        bias_constraint: A projection of the bias that optimizers apply, or its name.
        **kwargs: Arguments of ``Layer``; quantization is not offered.

    Raises:
        ValueError: ``units`` is no positive number.
    """

    def __init__(
        self,
        units: int,
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
        refuse(self, kwargs, "lora_rank", "quantization_config")
        super().__init__(
            activation,
            use_bias,
            (kernel_initializer, kernel_regularizer, kernel_constraint),
            (bias_initializer, bias_regularizer, bias_constraint),
            activity_regularizer=activity_regularizer,
            **kwargs,
        )
        if not isinstance(units, int):
            raise ValueError(
                f"Received an invalid value for `units`, expected a positive integer. Received: units={units!r}"
            )
        self.units = positive(units, "units")
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Shape) -> None:
        """Make the kernel and the bias."""
        length = input_shape[-1]
        self._make_kernel((length, self.units))
        assert length is not None, "a kernel has no unknown length"
        self.input_spec = InputSpec(min_ndim=2, axes={-1: length})
        self.built = True

    def call(self, inputs: EagerTensor) -> EagerTensor:
        """Compute the output."""
        if not inputs._dtype.is_floating:
            inputs = cast(inputs, self.dtype)
        kernel: Any = self.kernel
        bias: Any = self.bias
        if inputs._dtype is not kernel.dtype:
            # Without `autocast`.
            inputs, kernel = promoted([inputs, to_tensor(kernel)])
            bias = None if bias is None else cast(bias, inputs._dtype)
        outputs = matmul(inputs, kernel) if inputs.ndim == 2 else tensordot(inputs, kernel, 1)
        if bias is not None:
            outputs = bias_add(outputs, bias)
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the input's shape with ``units`` as the last length."""
        return (*input_shape[:-1], self.units)


class Activation(SameShapeLayer):
    """An activation as a layer. As ``keras.layers.Activation``."""

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Compute the output."""
        return self.activation(inputs)


class ReLU(Activation):
    """``keras.activations.relu`` as a layer. As ``keras.layers.ReLU``."""

    def __init__(
        self,
        max_value: float | None = None,
        negative_slope: float = 0.0,
        threshold: float = 0.0,
        **kwargs: Any,
    ) -> None:
        for name, value in (
            ("max_value", max_value),
            ("negative_slope", negative_slope),
            ("threshold", threshold),
        ):
            if value is not None and value < 0:
                raise ValueError(
                    f"{name} of a ReLU layer cannot be a negative value. Received: {name}={value}"
                )
        super().__init__(lambda x: activations.relu(x, negative_slope, max_value, threshold), **kwargs)


class Softmax(SameShapeLayer):
    """Softmax along an axis or several. As ``keras.layers.Softmax``."""

    def __init__(self, axis: Any = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis
        self.built = True

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """Compute the output.

        Args:
            inputs: A tensor.
            mask: True for the elements that count, of a shape that broadcasts to that of the inputs; the others get 0.

        Raises:
            ValueError: The mask has another shape.
        """
        if mask is None:
            return _softmax(inputs, self.axis)
        mask = to_tensor(mask)
        pairs = zip(reversed(mask.shape), reversed(inputs.shape), strict=False)
        if mask.ndim > inputs.ndim or any(None not in (a, b) and a not in (1, b) for a, b in pairs):
            raise ValueError(
                "The `mask` must be broadcastable to `inputs`. Each mask dimension must be 1 or match the "
                f"corresponding input dimension. Received: inputs.shape={inputs.shape}, mask.shape={mask.shape}"
            )
        counts = mask if mask.dtype.is_bool else greater(mask, cast(0.5, mask.dtype))
        lowest = cast(-3e4 if inputs._dtype is float16 else -1e9, inputs._dtype)
        return where(counts, _softmax(where(counts, inputs, lowest), self.axis), cast(0.0, inputs._dtype))


def _softmax(x: EagerTensor, axis: Any) -> EagerTensor:
    if isinstance(axis, list | tuple):
        if len(axis) > 1:
            return exp(subtract(x, reduce_logsumexp(x, list(axis), keepdims=True)))
        (axis,) = axis
    return activations.softmax(x, axis)


class Embedding(Layer):
    """A table of vectors, indexed by integers. As ``keras.layers.Embedding``.

    Args:
        input_dim: The number of vectors.
        output_dim: The length of a vector.
        embeddings_initializer: The initializer of the vectors, or its name.
        embeddings_regularizer: The regularizer of the vectors, or its name.
        embeddings_constraint: A projection of the vectors that optimizers apply, or its name.
        **kwargs: Arguments of ``Layer``; masks and given weights are not offered.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        refuse(self, kwargs, "mask_zero", "weights", "lora_rank", "quantization_config")
        kwargs.pop("input_length", None)
        super().__init__(**kwargs)
        self.input_dim, self.output_dim = positive(input_dim, "input_dim"), positive(output_dim, "output_dim")
        self.embeddings_initializer = initializers.get(embeddings_initializer)
        self.embeddings_regularizer = regularizers.get(embeddings_regularizer)
        self.embeddings_constraint = constraints.get(embeddings_constraint)

    def build(self, input_shape: Any) -> None:  # noqa: ARG002 - the vectors depend on no shape
        """Make the vectors."""
        self.embeddings = self.add_weight(
            (self.input_dim, self.output_dim),
            self.embeddings_initializer,
            name="embeddings",
            regularizer=self.embeddings_regularizer,
            constraint=self.embeddings_constraint,
        )
        self.built = True

    def call(self, inputs: EagerTensor) -> EagerTensor:
        """Compute the output; negative indices count from the end."""
        indices = inputs if inputs._dtype in (int32, int64) else cast(inputs, int32)
        return gather(self.embeddings, where(less(indices, 0), add(indices, self.input_dim), indices))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the input's shape with an axis for the vectors."""
        return (*input_shape, self.output_dim)


__all__ = ["Activation", "Dense", "Embedding", "ReLU", "Softmax"]
