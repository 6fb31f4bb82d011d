"""Initializers: objects that make the first value of a variable, given its shape."""

from typing import Any

import numpy as np

from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.array.creation import ones, zeros
from allotment.tf.ops.random.random import normal, uniform
from allotment.tf.tensors.dtype import DType, as_dtype, float32, string
from allotment.tf.tensors.tensor import EagerTensor


class Initializer:
    """Makes a tensor of a shape when it is called."""

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> EagerTensor:
        """Return the value of a variable of this shape."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an equal one."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Initializer":
        """Make one of what ``get_config`` returned."""
        return cls(**config)


def _numeric(dtype: Any) -> DType:
    wanted = as_dtype(dtype)
    if wanted is string:
        raise ValueError(f"Argument `dtype` expected to be numeric or boolean. Received {wanted}.")
    return wanted


def _floating(dtype: Any) -> DType:
    wanted = as_dtype(dtype)
    if not wanted.is_floating:
        raise ValueError(f"Argument `dtype` is expected to be floating point. Received: {wanted}.")
    return wanted


class zeros_initializer(Initializer):  # noqa: N801 - the name TensorFlow has
    """Zeros. As ``tf.zeros_initializer``."""

    def __call__(self, shape: Any, dtype: Any = float32, **options: Any) -> EagerTensor:  # noqa: ARG002
        """Return zeros.

        Raises:
            ValueError: The type is string.
        """
        return zeros(shape, _numeric(dtype))


class ones_initializer(Initializer):  # noqa: N801 - the name TensorFlow has
    """Ones. As ``tf.ones_initializer``."""

    def __call__(self, shape: Any, dtype: Any = float32, **options: Any) -> EagerTensor:  # noqa: ARG002
        """Return ones.

        Raises:
            ValueError: The type is string.
        """
        return ones(shape, _numeric(dtype))


class constant_initializer(Initializer):  # noqa: N801 - the name TensorFlow has
    """A value. As ``tf.constant_initializer``.

    Args:
        value: One number that fills the variable, or as many as it has.
        support_partition: Not looked at.

    Raises:
        TypeError: No number, text, sequence or array.
    """

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:  # noqa: ARG002
        if not (np.isscalar(value) or isinstance(value, list | tuple | np.ndarray)):
            raise TypeError(
                f"Invalid type for initial value={value} of type: {type(value).__name__}. Expected Python scalar, "
                "list or tuple of values, or numpy.ndarray."
            )
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> EagerTensor:  # noqa: ARG002
        """Return the value in the shape.

        Raises:
            TypeError: The value has more than one number and not as many as the shape.
        """
        return constant(self.value, dtype, shape)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an equal one."""
        return {"value": self.value}


class random_uniform_initializer(Initializer):  # noqa: N801 - the name TensorFlow has
    """Numbers that are all as likely. As ``tf.random_uniform_initializer``.

    Args:
        minval: The lower bound.
        maxval: The upper bound.
        seed: Of the operation that draws them.
    """

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: Any = None) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape: Any, dtype: Any = float32, **options: Any) -> EagerTensor:  # noqa: ARG002
        """Return random numbers.

        Raises:
            ValueError: The type is no number that can be drawn.
        """
        return uniform(shape, self.minval, self.maxval, dtype, self.seed)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an equal one."""
        return {"minval": self.minval, "maxval": self.maxval, "seed": self.seed}


class random_normal_initializer(Initializer):  # noqa: N801 - the name TensorFlow has
    """Normal numbers. As ``tf.random_normal_initializer``.

    Args:
        mean: The mean.
        stddev: The standard deviation.
        seed: Of the operation that draws them.
    """

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: Any = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape: Any, dtype: Any = float32, **options: Any) -> EagerTensor:  # noqa: ARG002
        """Return random numbers.

        Raises:
            ValueError: The type is no float.
        """
        return normal(shape, self.mean, self.stddev, _floating(dtype), self.seed)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an equal one."""
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed}


__all__ = [
    "Initializer",
    "constant_initializer",
    "ones_initializer",
    "random_normal_initializer",
    "random_uniform_initializer",
    "zeros_initializer",
]
