"""Initializers of TensorFlow 1, which have an element type and other defaults than those of TensorFlow 2."""

import math
from typing import Any

from allotment.tf.compat.functions.constant import constant
from allotment.tf.ops.array.creation import ones, zeros
from allotment.tf.ops.random.initializers import Initializer
from allotment.tf.ops.random.random import normal, truncated_normal, uniform
from allotment.tf.tensors.dtype import as_dtype, float32

#: The standard deviation of a standard normal distribution that is truncated at two standard deviations.
_CUT_DEVIATION = 0.87962566103423978


class _Typed(Initializer):
    """An initializer with an element type, whose arguments are its attributes."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None, **options: Any) -> Any:
        """Return a value of this shape, of the initializer's type unless another is given."""
        del partition_info, options
        wanted = self.dtype if dtype is None else as_dtype(dtype)
        return self._values([int(length) for length in shape], wanted)

    def _values(self, shape: list[int], dtype: Any) -> Any:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an equal one."""
        return {**vars(self), "dtype": self.dtype.name}


class zeros_initializer(_Typed):  # noqa: N801 - the name TensorFlow has
    """Zeros. As ``tf.compat.v1.zeros_initializer``."""

    def __init__(self, dtype: Any = float32) -> None:
        super().__init__(dtype)

    def _values(self, shape: list[int], dtype: Any) -> Any:
        return zeros(shape, dtype)


class ones_initializer(_Typed):  # noqa: N801 - the name TensorFlow has
    """Ones. As ``tf.compat.v1.ones_initializer``."""

    def __init__(self, dtype: Any = float32) -> None:
        super().__init__(dtype)

    def _values(self, shape: list[int], dtype: Any) -> Any:
        return ones(shape, dtype)


class constant_initializer(_Typed):  # noqa: N801 - the name TensorFlow has
    """A constant; in a graph its last number fills the rest of the variable. As in ``tf.compat.v1``."""

    def __init__(self, value: Any = 0, dtype: Any = float32, verify_shape: bool = False) -> None:
        super().__init__(dtype)
        self.value, self.verify_shape = value, verify_shape

    def _values(self, shape: list[int], dtype: Any) -> Any:
        return constant(self.value, dtype, shape, verify_shape=self.verify_shape)


class random_uniform_initializer(_Typed):  # noqa: N801 - the name TensorFlow has
    """Uniformly distributed numbers, from 0 to 1 unless bounds are given. As in ``tf.compat.v1``."""

    def __init__(self, minval: Any = 0.0, maxval: Any = None, seed: Any = None, dtype: Any = float32) -> None:
        super().__init__(dtype)
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def _values(self, shape: list[int], dtype: Any) -> Any:
        return uniform(shape, self.minval, self.maxval, dtype, self.seed)


class random_normal_initializer(_Typed):  # noqa: N801 - the name TensorFlow has
    """Normally distributed numbers. As in ``tf.compat.v1``."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 1.0, seed: Any = None, dtype: Any = float32) -> None:
        super().__init__(dtype)
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def _values(self, shape: list[int], dtype: Any) -> Any:
        return normal(shape, self.mean, self.stddev, dtype, self.seed)


class truncated_normal_initializer(random_normal_initializer):  # noqa: N801 - the name TensorFlow has
    """Normally distributed numbers, truncated at two standard deviations. As in ``tf.compat.v1``."""

    def _values(self, shape: list[int], dtype: Any) -> Any:
        return truncated_normal(shape, self.mean, self.stddev, dtype, self.seed)


class variance_scaling_initializer(_Typed):  # noqa: N801 - the name TensorFlow has
    """Random numbers with a variance of ``scale`` divided by the number of inputs or outputs. As in ``tf.compat.v1``.

    Args:
        scale: The variance times the number of inputs or outputs.
        mode: ``fan_in`` for the number of inputs, ``fan_out`` of outputs, or ``fan_avg`` for their mean.
        distribution: ``truncated_normal`` (or ``normal``), ``untruncated_normal`` or ``uniform``.
        seed: The seed of the operation.
        dtype: The element type.

    Raises:
        ValueError: Another mode or distribution, or a scale that is not positive.
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: Any = None,
        dtype: Any = float32,
    ) -> None:
        if scale <= 0:
            raise ValueError(f"Argument `scale` must be a positive float. Received: {scale}")
        modes = ("fan_in", "fan_out", "fan_avg")
        if mode not in modes:
            raise ValueError(f"Argument `mode` should be one of {modes}. Received: {mode}")
        known = ("uniform", "normal", "truncated_normal", "untruncated_normal")
        if distribution not in known:
            raise ValueError(f"Argument `distribution` should be one of {known}. Received: {distribution}")
        super().__init__(dtype)
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed

    def _values(self, shape: list[int], dtype: Any) -> Any:
        inputs, outputs = fans(shape)
        count = {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2}[self.mode]
        variance = self.scale / max(1.0, count)
        if self.distribution == "uniform":
            limit = math.sqrt(3 * variance)
            return uniform(shape, -limit, limit, dtype, self.seed)
        if self.distribution == "untruncated_normal":
            return normal(shape, 0.0, math.sqrt(variance), dtype, self.seed)
        return truncated_normal(shape, 0.0, math.sqrt(variance) / _CUT_DEVIATION, dtype, self.seed)


def fans(shape: list[int]) -> tuple[float, float]:
    """Return the numbers of inputs and outputs of a unit with weights of this shape."""
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


class glorot_uniform_initializer(variance_scaling_initializer):  # noqa: N801 - the name TensorFlow has
    """Uniformly distributed numbers, scaled by inputs and outputs: the default of ``get_variable``."""

    def __init__(self, seed: Any = None, dtype: Any = float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an equal one."""
        return {"seed": self.seed, "dtype": self.dtype.name}


class glorot_normal_initializer(variance_scaling_initializer):  # noqa: N801 - the name TensorFlow has
    """Normally distributed numbers, scaled by inputs and outputs. As ``tf.compat.v1.glorot_normal_initializer``."""

    def __init__(self, seed: Any = None, dtype: Any = float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an equal one."""
        return {"seed": self.seed, "dtype": self.dtype.name}


__all__ = [
    "constant_initializer",
    "glorot_normal_initializer",
    "glorot_uniform_initializer",
    "ones_initializer",
    "random_normal_initializer",
    "random_uniform_initializer",
    "truncated_normal_initializer",
    "variance_scaling_initializer",
    "zeros_initializer",
]
