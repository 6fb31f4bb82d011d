"""Layers that reshape samples."""

import math
from typing import Any

from allotment.tf.keras.engine.arguments import channels_first
from allotment.tf.keras.engine.calls import calls
from allotment.tf.keras.engine.input_spec import InputSpec
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.engine.symbolic import Shape
from allotment.tf.ops.array.layout import reshape, transpose
from allotment.tf.ops.array.shapes import shape as shape_of
from allotment.tf.tensors.tensor import EagerTensor


class Flatten(Layer):
    """Reshapes each sample to a vector. As ``keras.layers.Flatten``."""

    _keeps_dtype = True

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._is_channels_first = channels_first(data_format)
        self.input_spec = InputSpec(min_ndim=1)
        self.built = True

    def call(self, inputs: EagerTensor) -> EagerTensor:
        """Compute the output."""
        if self._is_channels_first and inputs.ndim > 1:
            # As if channels were the last axis.
            inputs = transpose(inputs, [0, *range(2, inputs.ndim), 1])
        if calls.tracing:
            return _traced(inputs, self.compute_output_shape(tuple(inputs.shape)))
        shape = inputs._array.shape
        return reshape(inputs, (shape[0], math.prod(shape[1:])))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the batch and the product of the other lengths."""
        rest = input_shape[1:]
        return (input_shape[0], None if None in rest else math.prod(each or 0 for each in rest))


def _traced(inputs: EagerTensor, lengths: Shape) -> EagerTensor:
    """Reshape a tensor without a value; at most one length besides that of the batch may be unknown."""
    first, *others = lengths
    made = reshape(
        inputs,
        [shape_of(inputs)[0] if first is None else first, *(-1 if each is None else each for each in others)],
    )
    made.set_shape(lengths)
    return made


class Reshape(Layer):
    """Reshapes each sample; at most one length may be -1. As ``keras.layers.Reshape``."""

    _keeps_dtype = True

    def __init__(self, target_shape: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)
        if self.target_shape.count(-1) > 1:
            raise ValueError(
                f"There must be at most one unknown dimension in target_shape. Received: target_shape={target_shape}."
            )
        self.built = True

    def call(self, inputs: EagerTensor) -> EagerTensor:
        """Compute the output."""
        if calls.tracing:
            return _traced(inputs, self.compute_output_shape(tuple(inputs.shape)))
        # Without -1: a batch without samples has no unique length.
        return reshape(inputs, self.compute_output_shape(inputs._array.shape))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the batch and the target shape.

        Raises:
            ValueError: The target shape has another number of elements.
        """
        sample = input_shape[1:]
        known = math.prod(each for each in self.target_shape if each != -1)
        if None in sample:
            return (input_shape[0], *(None if each == -1 else each for each in self.target_shape))
        size = math.prod(each or 0 for each in sample)
        fits = size == known if -1 not in self.target_shape else known and size % known == 0
        if not fits:
            raise ValueError(
                f"The total size of the tensor must be unchanged. Received: input_shape={tuple(sample)}, "
                f"target_shape={self.target_shape}"
            )
        return (input_shape[0], *(size // known if each == -1 else each for each in self.target_shape))


__all__ = ["Flatten", "Reshape"]
