"""Dropout as a layer."""

from typing import Any

from allotment.tf.keras.engine.calls import calls
from allotment.tf.keras.engine.replicas import PerReplicaNumber, replica_index, run_once
from allotment.tf.keras.layers.bases import SameShapeLayer
from allotment.tf.ops.array.array import identity
from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.math.arithmetic import multiply
from allotment.tf.ops.math.comparison import greater_equal
from allotment.tf.ops.random.random import uniform
from allotment.tf.ops.random.stateless import stateless_uniform
from allotment.tf.tensors.tensor import EagerTensor


class Dropout(SameShapeLayer):
    """Sets elements to zero at random in training, and scales the others up. As ``keras.layers.Dropout``.

    The dropped elements depend on the seed, the replica and the number of calls: they are the same in each run of a
    program with seeds, whatever the order of its replicas.

    Args:
        rate: The probability of setting an element to zero.
        noise_shape: The shape of the random mask, which broadcasts to the input's; ``None`` stands for the length of
            the input.
        seed: The seed of the random numbers; random if not given.
        **kwargs: Arguments of ``Layer``.

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
        if calls.tracing:
            # Nothing is drawn, so that the numbers of later calls stay the same.
            return identity(inputs)
        if self.seed is None:
            # Not in ``__init__``, which must not initialize devices.
            run_once(self._draw_seed)
        call = self._calls.add(1) - 1
        shape = inputs._array.shape
        if self.noise_shape is not None:
            shape = tuple(
                own if wanted is None else wanted for own, wanted in zip(shape, self.noise_shape, strict=True)
            )
        seed = (self.seed, (int(call) << 16) + (replica_index() or 0))
        kept = greater_equal(stateless_uniform(shape, seed, dtype=inputs._dtype), self.rate)
        return where(kept, multiply(inputs, 1 / (1 - self.rate)), 0.0)


__all__ = ["Dropout"]
