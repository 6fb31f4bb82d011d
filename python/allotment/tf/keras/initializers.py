"""Initializers: initial values of a layer's variables. As ``keras.initializers``.

Random initializers with a seed return the same values in each call; without one, they use the generator that
``tf.random.set_seed`` starts.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, Final

from allotment.tf.initializers import Initializer
from allotment.tf.keras.absent import look_up
from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.array import creation
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.repetition import broadcast_to
from allotment.tf.ops.random.random import normal, uniform
from allotment.tf.ops.random.random import truncated_normal as draw_truncated_normal
from allotment.tf.ops.random.stateless import stateless_normal, stateless_truncated_normal, stateless_uniform
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.tensor import EagerTensor

#: The standard deviation of a standard normal distribution that is truncated at two standard deviations.
_TRUNCATED_DEVIATION: Final = 0.87962566103423978
_DISTRIBUTIONS: Final = ("uniform", "truncated_normal", "untruncated_normal")


class _Filled(Initializer):
    """The base of initializers with one value for all elements."""

    value: Any = 0.0

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> EagerTensor:  # noqa: ARG002
        """Return the value in the shape, broadcast to it."""
        value = cast(self.value, dtype or "float32")
        # Of arrays a product, as Keras's: they may have more axes than the shape.
        return value * creation.ones(shape, value.dtype) if value.ndim else broadcast_to(value, shape)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of an equal initializer."""
        return {name: vars(self)[name] for name in inspect.signature(type(self)).parameters}


class Constant(_Filled):
    """A value, broadcast to the shape. As ``keras.initializers.Constant``."""

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value


class Zeros(_Filled):
    """Zeros. As ``keras.initializers.Zeros``."""

    value = 0.0


class Ones(_Filled):
    """Ones. As ``keras.initializers.Ones``."""

    value = 1.0


class _Drawn(Initializer):
    """The base of random initializers."""

    seed: int | None

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of an equal initializer."""
        return {name: vars(self)[name] for name in inspect.signature(type(self)).parameters}


class RandomNormal(_Drawn):
    """Normally distributed numbers. As ``keras.initializers.RandomNormal``.

    Args:
        mean: The mean.
        stddev: The standard deviation.
        seed: The seed; with one, each call returns the same values.
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> EagerTensor:  # noqa: ARG002
        """Return random numbers in the shape."""
        return _draw(normal, stateless_normal, self.seed, shape, self.mean, self.stddev, dtype)


class TruncatedNormal(RandomNormal):
    """Normally distributed numbers, truncated at two standard deviations. As ``keras.initializers.TruncatedNormal``."""

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> EagerTensor:  # noqa: ARG002
        """Return random numbers in the shape."""
        return _draw(
            draw_truncated_normal, stateless_truncated_normal, self.seed, shape, self.mean, self.stddev, dtype
        )


class RandomUniform(_Drawn):
    """Uniformly distributed numbers. As ``keras.initializers.RandomUniform``.

    Args:
        minval: The lower bound.
        maxval: The upper bound.
        seed: The seed; with one, each call returns the same values.
    """

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> EagerTensor:  # noqa: ARG002
        """Return random numbers in the shape."""
        return _draw(uniform, stateless_uniform, self.seed, shape, self.minval, self.maxval, dtype)


def _draw(
    draw: Callable[..., EagerTensor],
    seeded: Callable[..., EagerTensor],
    seed: int | None,
    shape: Any,
    first: float,
    second: float,
    dtype: Any,
) -> EagerTensor:
    """Draw random numbers; with a seed, they depend on the seed alone.

    Raises:
        TypeError: The type is no float.
    """
    dtype = as_dtype(dtype or "float32")
    if not dtype.is_floating and draw is not uniform:
        raise TypeError(
            f"Cannot convert {first} to a tensor of dtype {dtype.name}: random initializers return floats"
        )
    if seed is None:
        return draw(shape, first, second, dtype)
    return seeded(shape, (seed, 0), first, second, dtype)


class VarianceScaling(_Drawn):
    """Random numbers whose variance depends on the number of connections. As ``keras.initializers.VarianceScaling``.

    Args:
        scale: The variance times the number of connections.
        mode: ``"fan_in"``, ``"fan_out"`` or ``"fan_avg"``: the inputs of a unit, its outputs, or their mean.
        distribution: ``"truncated_normal"``, ``"untruncated_normal"`` or ``"uniform"``.
        seed: The seed; with one, each call returns the same values.

    Raises:
        ValueError: Another scale, mode or distribution.
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
    ) -> None:
        if scale <= 0:
            raise ValueError(f"Argument `scale` must be positive float. Received: scale={scale}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(
                f"Invalid `mode` argument: {mode}. Please use one of ('fan_in', 'fan_out', 'fan_avg')"
            )
        distribution = distribution.lower()
        if distribution == "normal":
            distribution = "truncated_normal"
        if distribution not in _DISTRIBUTIONS:
            raise ValueError(
                f"Invalid `distribution` argument: {distribution}. Please use one of {_DISTRIBUTIONS}"
            )
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> EagerTensor:  # noqa: ARG002
        """Return random numbers in the shape."""
        inputs, outputs = fans(tuple(shape))
        counted = {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2}[self.mode]
        variance = self.scale / max(1.0, counted)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return _draw(uniform, stateless_uniform, self.seed, shape, -limit, limit, dtype)
        if self.distribution == "untruncated_normal":
            return _draw(normal, stateless_normal, self.seed, shape, 0.0, math.sqrt(variance), dtype)
        deviation = math.sqrt(variance) / _TRUNCATED_DEVIATION
        return _draw(
            draw_truncated_normal, stateless_truncated_normal, self.seed, shape, 0.0, deviation, dtype
        )


def fans(shape: tuple[int, ...]) -> tuple[float, float]:
    """Return the numbers of inputs and outputs of a unit with weights of this shape."""
    if len(shape) < 2:
        only = shape[0] if shape else 1
        return only, only
    field = math.prod(shape[:-2])
    return field * shape[-2], field * shape[-1]


def _scaling(name: str, scale: float, mode: str, distribution: str, doc: str) -> type[VarianceScaling]:
    def __init__(self: VarianceScaling, seed: int | None = None) -> None:  # noqa: N807 - that of a class made here
        VarianceScaling.__init__(self, scale, mode, distribution, seed)

    made = type(name, (VarianceScaling,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})
    made.__qualname__ = name
    return made


_NORMAL, _UNIFORM = "truncated_normal", "uniform"
GlorotUniform = _scaling("GlorotUniform", 1.0, "fan_avg", _UNIFORM, "Uniform by inputs and outputs.")
GlorotNormal = _scaling("GlorotNormal", 1.0, "fan_avg", _NORMAL, "Normal by inputs and outputs.")
HeUniform = _scaling("HeUniform", 2.0, "fan_in", _UNIFORM, "Uniform by inputs, for layers behind a ReLU.")
HeNormal = _scaling("HeNormal", 2.0, "fan_in", _NORMAL, "Normal by inputs, for layers behind a ReLU.")
LecunUniform = _scaling("LecunUniform", 1.0, "fan_in", _UNIFORM, "Uniform by inputs.")
LecunNormal = _scaling("LecunNormal", 1.0, "fan_in", _NORMAL, "Normal by inputs.")

_BY_NAME: Final[dict[str, Callable[[], Initializer]]] = {
    "constant": Constant,
    "glorot_normal": GlorotNormal,
    "glorot_uniform": GlorotUniform,
    "he_normal": HeNormal,
    "he_uniform": HeUniform,
    "lecun_normal": LecunNormal,
    "lecun_uniform": LecunUniform,
    "ones": Ones,
    "random_normal": RandomNormal,
    "random_uniform": RandomUniform,
    "truncated_normal": TruncatedNormal,
    "variance_scaling": VarianceScaling,
    "zeros": Zeros,
}
_BY_ANY_NAME: Final = {
    **_BY_NAME,
    **{made.__name__: made for made in _BY_NAME.values()},
    "normal": RandomNormal,
    "one": Ones,
    "uniform": RandomUniform,
    "zero": Zeros,
}


def get(identifier: Any) -> Any:
    """Return the initializer of a name; other functions are returned as they are. As ``keras.initializers.get``.

    Raises:
        ValueError: Unknown.
    """
    return look_up("initializer", identifier, _BY_ANY_NAME, Initializer, _BY_NAME)


__all__ = [
    "Constant",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "Initializer",
    "LecunNormal",
    "LecunUniform",
    "Ones",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "get",
]

refuse_other_names(__name__)
