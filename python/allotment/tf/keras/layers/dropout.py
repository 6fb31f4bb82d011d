"""Dropout as a layer."""

from typing import Any

from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.engine.replicas import PerReplicaNumber, once, replica
from allotment.tf.keras.engine.symbolic import Shape
from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.math.arithmetic import multiply
from allotment.tf.ops.math.comparison import greater_equal
from allotment.tf.ops.random.random import uniform
from allotment.tf.ops.random.stateless import stateless_uniform
from allotment.tf.tensors.tensor import EagerTensor


class Dropout(Layer):
    """In training, set a share of the elements to zero and scale the others up. As ``keras.layers.Dropout``.

    What is dropped depends on the seed, the replica, and how often it was called: the same in each run of a program
    that has seeds, in whatever order its replicas come.

    Args:
        rate: The share.
        noise_shape: A shape that broadcasts to the input's: elements that share a place share their fate; ``None``
            for a length that is the input's.
        seed: Of the random numbers; drawn if not given.
        **kwargs: Those of every layer.

    Raises:
        ValueError: The rate is not between 0 and 1.
    """

    def __init__(self, rate: float, noise_shape: Any = None, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not 0 <= rate <= 1:
            raise ValueError(
                "Invalid value received for argument `rate`. Expected a float value between 0 and 1. "
                f"Received: rate={rate}"
            )
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed
        self.built = True
        self._calls = PerReplicaNumber()

    def _draw_seed(self) -> None:
        self.seed = int(uniform((), 0, 2**31 - 1, "int32"))

    def call(self, inputs: EagerTensor, training: bool | None = None) -> EagerTensor:
        """Compute the output."""
        if not training or self.rate == 0:
            return inputs
        if self.rate == 1:
            return zeros_like(inputs)
        if self.seed is None:
            # Not when the layer is made: that asks for no device.
            once(self._draw_seed)
        call = self._calls.add(1) - 1
        shape = inputs._array.shape
        if self.noise_shape is not None:
            shape = tuple(
                own if wanted is None else wanted for own, wanted in zip(shape, self.noise_shape, strict=True)
            )
        seed = (self.seed, (int(call) << 16) + (replica() or 0))
        kept = greater_equal(stateless_uniform(shape, seed, dtype=inputs._dtype), self.rate)
        return where(kept, multiply(inputs, 1 / (1 - self.rate)), 0.0)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        return input_shape


__all__ = ["Dropout"]
