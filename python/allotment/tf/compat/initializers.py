"""TensorFlow 1's initializers: they have an element type of their own, and other defaults than today's."""

import math
from typing import Any

from allotment.tf.compat.constants import constant
from allotment.tf.ops.array.creation import ones, zeros
from allotment.tf.ops.random.initializers import Initializer
from allotment.tf.ops.random.random import normal, truncated_normal, uniform
from allotment.tf.tensors.dtype import as_dtype, float32

#: The standard deviation of normal numbers of which those beyond two of it are drawn again.
_CUT_DEVIATION = 0.87962566103423978


class _Typed(Initializer):
    """An initializer with a type; its arguments are its attributes."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None, **options: Any) -> Any:
        """Return a value of this shape, of the initializer's type unless another is given."""
        del partition_info, options
        wanted = self.dtype if dtype is None else as_dtype(dtype)
        return self._made([int(length) for length in shape], wanted)

    def _made(self, shape: list[int], dtype: Any) -> Any:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an equal one."""
        return {**vars(self), "dtype": self.dtype.name}


class zeros_initializer(_Typed):  # noqa: N801 - the name TensorFlow has
    """Zeros. As ``tf.compat.v1.zeros_initializer``."""

    def __init__(self, dtype: Any = float32) -> None:
        super().__init__(dtype)

    def _made(self, shape: list[int], dtype: Any) -> Any:
        return zeros(shape, dtype)


class ones_initializer(_Typed):  # noqa: N801 - the name TensorFlow has
    """Ones. As ``tf.compat.v1.ones_initializer``."""

    def __init__(self, dtype: Any = float32) -> None:
        super().__init__(dtype)

    def _made(self, shape: list[int], dtype: Any) -> Any:
        return ones(shape, dtype)


class constant_initializer(_Typed):  # noqa: N801 - the name TensorFlow has
    """A value; in a graph the last of too few numbers fills the variable. As TensorFlow 1's."""

    def __init__(self, value: Any = 0, dtype: Any = float32, verify_shape: bool = False) -> None:
        super().__init__(dtype)
        self.value, self.verify_shape = value, verify_shape

    def _made(self, shape: list[int], dtype: Any) -> Any:
        return constant(self.value, dtype, shape, verify_shape=self.verify_shape)


class random_uniform_initializer(_Typed):  # noqa: N801 - the name TensorFlow has
    """Numbers that are all as likely, from 0 to 1 unless bounds are given. As TensorFlow 1's."""

    def __init__(self, minval: Any = 0.0, maxval: Any = None, seed: Any = None, dtype: Any = float32) -> None:
        super().__init__(dtype)
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def _made(self, shape: list[int], dtype: Any) -> Any:
        return uniform(shape, self.minval, self.maxval, dtype, self.seed)


class random_normal_initializer(_Typed):  # noqa: N801 - the name TensorFlow has
    """Normal numbers with a standard deviation of 1 unless another is given. As TensorFlow 1's."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 1.0, seed: Any = None, dtype: Any = float32) -> None:
        super().__init__(dtype)
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def _made(self, shape: list[int], dtype: Any) -> Any:
        return normal(shape, self.mean, self.stddev, dtype, self.seed)


class truncated_normal_initializer(random_normal_initializer):  # noqa: N801 - the name TensorFlow has
    """Normal numbers, none further from the mean than two standard deviations. As TensorFlow 1's."""

    def _made(self, shape: list[int], dtype: Any) -> Any:
        return truncated_normal(shape, self.mean, self.stddev, dtype, self.seed)


class variance_scaling_initializer(_Typed):  # noqa: N801 - the name TensorFlow has
    """Random numbers, the smaller the more inputs or outputs there are. As TensorFlow 1's.

    Args:
        scale: What the variance is times the number of inputs or outputs.
        mode: Which number: ``fan_in``, ``fan_out`` or ``fan_avg``, their mean.
        distribution: ``truncated_normal`` (or ``normal``), ``untruncated_normal`` or ``uniform``.
        seed: Of the operation that draws them.
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

    def _made(self, shape: list[int], dtype: Any) -> Any:
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
    """How many inputs and outputs each element of a layer's weights has to do with."""
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


class glorot_uniform_initializer(variance_scaling_initializer):  # noqa: N801 - the name TensorFlow has
    """What variables are made of that are given nothing. As ``tf.compat.v1.glorot_uniform_initializer``."""

    def __init__(self, seed: Any = None, dtype: Any = float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an equal one."""
        return {"seed": self.seed, "dtype": self.dtype.name}


class glorot_normal_initializer(variance_scaling_initializer):  # noqa: N801 - the name TensorFlow has
    """The same with normal numbers. As ``tf.compat.v1.glorot_normal_initializer``."""

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
