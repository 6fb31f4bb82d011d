"""Operations that draw random numbers; where they come from is in ``seeds``.

The numbers are not TensorFlow's for the same seeds; what decides them, and their distributions, are.
"""

from typing import Any

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.arguments.integers import number_argument
from allotment.tf.ops.array.creation import check_int32, shape_input, zeros_like
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import check_types, run
from allotment.tf.ops.inference.common import unchanged
from allotment.tf.ops.inference.shape_functions import Dims, Inference, Output, number
from allotment.tf.ops.math.arithmetic import add, maximum, multiply, subtract
from allotment.tf.ops.math.division import realdiv
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.random import draws
from allotment.tf.ops.random.draws import Source
from allotment.tf.ops.random.seeds import generator
from allotment.tf.ops.table import Host, Operation, dims, operation
from allotment.tf.ops.types.element_types import FLOATS, INDICES, check_attribute
from allotment.tf.tensors.dtype import DType, as_dtype, float32, int64
from allotment.tf.tensors.tensor import EagerTensor


def shape_fault(shape: tuple[int, ...], *rest: Any) -> str | None:
    negative = [length for length in shape if length < 0]
    return f"Dimension {negative[0]} must be >= 0" if negative else None


def bounds_fault(low: Array, high: Array, shape: tuple[int, ...], *rest: Any) -> str | None:
    for what, value in (("minval", low), ("maxval", high)):
        if value.ndim:
            return f"{what} must be 0-D, got shape {dims(value)}"
    if low >= high:
        return f"Need minval < maxval, got {low} >= {high}"
    return shape_fault(shape)


def integers_between(low: Array, high: Array, shape: tuple[int, ...], dtype: DType, source: Source) -> Array:
    return draws.integers(shape, dtype, source, int(low), int(high))


def drawn_shape(c: Inference, shape: Any, dtype: Any, source: Any) -> list[Output]:
    """One output of the requested shape and type."""
    return c.one(c.requested(shape, least=0), dtype)


def integers_shape(c: Inference, shape: Any, dtype: Any, source: Any) -> list[Output]:
    """``drawn_shape`` of numbers between two scalars."""
    c.ranked(0, 0)
    c.ranked(1, 0)
    return c.one(c.requested(shape, least=0), dtype)


_uniform = operation("RandomUniform", draws.uniform, shape=drawn_shape, fault=shape_fault)
# Not what counts and shapes are kept with: the result is the device's.
_uniform_int = operation(
    "RandomUniformInt", integers_between, shape=integers_shape, fault=bounds_fault, host=Host.NEVER
)
_normal = operation("RandomStandardNormal", draws.normal, shape=drawn_shape, fault=shape_fault)
_truncated = operation("TruncatedNormal", draws.truncated_normal, shape=drawn_shape, fault=shape_fault)


@in_name_scope("random_uniform")
def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    seed: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """Draw numbers that are all as likely, from ``minval`` up to, but not including, ``maxval``.

    As ``tf.random.uniform``. Without ``maxval`` floats go up to 1; integers need it.

    Raises:
        ValueError: A type other than float16, float32, float64, int32 and int64, or integers without ``maxval``.
        InvalidArgumentError: Integers with ``minval`` not below ``maxval``.
    """
    wanted = as_dtype(dtype)
    if wanted not in FLOATS + INDICES:
        raise ValueError(
            f"Argument `dtype` got invalid value {wanted}. Accepted dtypes are "
            f"({', '.join(f'tf.{each.name}' for each in FLOATS + INDICES)})."
        )
    if wanted.is_integer and maxval is None:
        raise ValueError(f"Must specify maxval for integer dtype {wanted!r}")
    if wanted.is_integer:
        low, high = to_tensor(minval, wanted), to_tensor(maxval, wanted)
        lengths = shape_input(shape, _uniform_int.name)
        return run(  # type: ignore[no-any-return]
            _uniform_int, (low, high), lengths, wanted, generator(_uniform_int.name, seed), name=name
        )
    inner = _unless_in_graph(name)
    drawn = _drawn(_uniform, shape_input(shape, _uniform.name), wanted, seed, inner)
    return between(drawn, minval, 1 if maxval is None else maxval, name, inner)


def _unless_in_graph(name: str | None) -> str | None:
    """Return the name of a node for error texts; in a graph the last node of a scope has it."""
    return name if thread.state.graph is None else None


def between(drawn: EagerTensor, low: Any, high: Any, name: str | None, of_product: str | None) -> EagerTensor:
    """Stretch floats between 0 and 1 to other bounds; ``of_product`` is the name where the lower one stays."""
    from_zero = isinstance(low, int | float) and low == 0
    if from_zero and isinstance(high, int | float) and high == 1:
        return drawn
    high = to_tensor(high, drawn._dtype)
    if from_zero:
        return multiply(drawn, high, of_product)
    low = to_tensor(low, drawn._dtype)
    return add(multiply(drawn, subtract(high, low)), low, name)


def _drawn(
    row: Operation, lengths: tuple[int, ...], dtype: DType, seed: Any, name: str | None
) -> EagerTensor:
    return run(row, (), lengths, dtype, generator(row.name, seed), name=name)  # type: ignore[no-any-return]


def _moved(
    row: Operation, shape: Any, mean: Any, stddev: Any, dtype: Any, seed: Any, name: str | None
) -> EagerTensor:
    wanted = as_dtype(dtype)
    middle, width = to_tensor(mean, wanted), to_tensor(stddev, wanted)
    lengths = shape_input(shape, row.name)
    check_attribute(row.name, "dtype", wanted, name)
    return add(multiply(_drawn(row, lengths, wanted, seed, _unless_in_graph(name)), width), middle, name)


@in_name_scope("random_normal")
def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """Draw normal numbers. As ``tf.random.normal``."""
    return _moved(_normal, shape, mean, stddev, dtype, seed, name)


@in_name_scope("truncated_normal")
def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """Draw normal numbers at most two standard deviations from the mean. As ``tf.random.truncated_normal``."""
    return _moved(_truncated, shape, mean, stddev, dtype, seed, name)


_shuffle = operation("RandomShuffle", draws.shuffled, shape=unchanged)


def shuffle(value: Any, seed: Any = None, name: str | None = None) -> EagerTensor:
    """Put the slices along the first axis in another order. As ``tf.random.shuffle``."""
    source = generator(_shuffle.name, seed)
    return run(_shuffle, (to_tensor(value),), source, name=name)  # type: ignore[no-any-return]


def _categorical_fault(logits: Array, samples: int, *rest: Any) -> str | None:
    if logits.ndim != 2:
        return f"logits should be a matrix, got shape {dims(logits)}"
    if samples < 0:
        return f"num_samples should be non-negative, got {samples}"
    if logits.shape[1] == 0:
        return "num_classes should be positive, got 0"
    return None


def categories_shape(c: Inference, samples: Any, dtype: Any, source: Any) -> list[Output]:
    """For each row of logits so many numbers of columns."""
    return c.one((c.ranked(0, 2)[0], number(samples)), dtype)


categorical_row = operation("Multinomial", draws.categories, shape=categories_shape, fault=_categorical_fault)


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: Any = None, name: str | None = None
) -> EagerTensor:
    """For each row of logarithms of weights, draw numbers of columns by weight. As ``tf.random.categorical``.

    Raises:
        ValueError: A type other than int32 and int64, which is the one without ``dtype``.
        InvalidArgumentError: ``logits`` is no matrix, or has no columns.
    """
    wanted = int64 if dtype is None else as_dtype(dtype)
    if wanted not in INDICES:
        raise ValueError(
            f"Argument `dtype` got invalid value {wanted}. Accepted dtypes are (tf.int32, tf.int64)."
        )
    samples, source = number_argument(num_samples, "num_samples"), generator(categorical_row.name, seed)
    return run(  # type: ignore[no-any-return]
        categorical_row, (to_tensor(logits),), samples, wanted, source, name=name
    )


def _shape_behind_fault(array: Array, shape: tuple[int, ...], *rest: Any) -> str | None:
    return shape_fault(shape)


def _poisson_shape(c: Inference, shape: Any, dtype: Any, source: Any) -> list[Output]:
    return c.one(_shape_behind(c, shape), dtype)


_poisson = operation("RandomPoissonV2", draws.poisson, shape=_poisson_shape, fault=_shape_behind_fault)


def poisson(
    shape: Any, lam: Any, dtype: Any = float32, seed: Any = None, name: str | None = None
) -> EagerTensor:
    """Draw counts of events, ``shape`` of them for each rate of ``lam``. As ``tf.random.poisson``."""
    wanted = as_dtype(dtype)
    check_int32(shape)
    rates, lengths = to_tensor(lam), shape_input(shape, _poisson.name)
    check_attribute(_poisson.name, "dtype", wanted, name)
    source = generator(_poisson.name, seed)
    return run(_poisson, (rates,), lengths, wanted, source, name=name)  # type: ignore[no-any-return]


def _gamma_shape(c: Inference, shape: Any, source: Any) -> list[Output]:
    return c.one(_shape_behind(c, shape))


def _shape_behind(c: Inference, shape: Any) -> Dims:
    """The requested shape, with that of the first input's behind it."""
    first, rest = c.requested(shape, least=0), c.shape()
    return None if first is None or rest is None else first + rest


_gamma = operation("RandomGamma", draws.gamma, shape=_gamma_shape, fault=_shape_behind_fault)


def gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = float32,
    seed: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """Draw from gamma distributions, ``shape`` numbers for each of them. As ``tf.random.gamma``.

    Args:
        shape: The first axes of the result; those of ``alpha`` and ``beta`` together follow.
        alpha: Their shape parameter.
        beta: Their rate, 1 unless given.
        dtype: The type of the result.
        seed: Of the operation.
        name: For error texts.

    Raises:
        ValueError: A type that is no float.
    """
    wanted = as_dtype(dtype)
    check_int32(shape)
    shapes = to_tensor(alpha, wanted)
    rates = to_tensor(1 if beta is None else beta, wanted)
    if not (wanted.is_floating or wanted.is_complex):
        raise ValueError(f"gamma numbers are floats, not {wanted.name}")
    lengths = shape_input(shape, _gamma.name)
    check_types(_gamma, (shapes,), name)
    # Of the shape of both.
    drawn = run(_gamma, (add(shapes, zeros_like(rates)),), lengths, generator(_gamma.name, seed), name=name)
    # Not zero, whose logarithm has no use.
    return maximum(to_tensor(wanted.numpy.type(np.finfo(wanted.numpy).tiny)), realdiv(drawn, rates), name)


__all__ = [
    "categorical",
    "gamma",
    "normal",
    "poisson",
    "shuffle",
    "truncated_normal",
    "uniform",
]
