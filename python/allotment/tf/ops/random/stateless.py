"""Operations that draw random numbers from nothing but a seed: the same ones for the same seed, always.

The numbers are not TensorFlow's for the same seed.
"""

from typing import Any

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.arguments.integers import number_argument
from allotment.tf.ops.array.creation import shape_input
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output, number
from allotment.tf.ops.math.arithmetic import add, multiply
from allotment.tf.ops.random import draws
from allotment.tf.ops.random.draws import Source
from allotment.tf.ops.random.random import (
    between,
    bounds_fault,
    categorical_row,
    categories_shape,
    drawn_shape,
    integers_between,
    integers_shape,
    shape_fault,
)
from allotment.tf.ops.random.seeds import generator_of
from allotment.tf.ops.table import Host, Operation, dims, operation
from allotment.tf.ops.types.element_types import FLOATS, INDICES, check_attribute
from allotment.tf.tensors.dtype import DType, as_dtype, float32, int32, int64, uint32, uint64
from allotment.tf.tensors.tensor import EagerTensor


def _seed_fault(seed: Array, *rest: Any) -> str | None:
    return None if seed.shape == (2,) else f"seed must have shape [2], not {dims(seed)}"


def _key_shape(c: Inference) -> list[Output]:
    c.same(c.ranked(0, 1)[0], 2)
    return c.one((2,), int64)


_key = operation(
    "StatelessRandomGetKeyCounter",
    lambda seed: seed.astype(np.int64),
    shape=_key_shape,
    fault=_seed_fault,
)
_uniform = operation("StatelessRandomUniformV2", draws.uniform, shape=drawn_shape, fault=shape_fault)
_uniform_int = operation(
    "StatelessRandomUniformIntV2", integers_between, shape=integers_shape, fault=bounds_fault, host=Host.NEVER
)
_full_int = operation(
    "StatelessRandomUniformFullIntV2", draws.any_integers, shape=drawn_shape, fault=shape_fault
)
_normal = operation("StatelessRandomNormalV2", draws.normal, shape=drawn_shape, fault=shape_fault)
_truncated = operation(
    "StatelessTruncatedNormalV2", draws.truncated_normal, shape=drawn_shape, fault=shape_fault
)


def _source(seed: Any) -> Source:
    numbers = run(_key, (to_tensor(seed),))._array.tolist()
    graph = thread.state.graph
    # A node starts where the seed says in every run.
    return generator_of(*numbers) if graph is None else graph._recording.fixed_source(numbers)


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> EagerTensor:
    """Draw numbers that are all as likely, decided by ``seed``, two numbers. As ``tf.random.stateless_uniform``.

    Integers need both bounds, or neither: then they are any that the type has.

    Raises:
        ValueError: A type that is no float and no integer of 32 or 64 bits, or integers with one bound.
        InvalidArgumentError: ``seed`` is not two numbers, or integers with ``minval`` not below ``maxval``.
    """
    return uniform_from(_source(seed), shape, minval, maxval, dtype, name)


def uniform_from(
    source: Source, shape: Any, minval: Any, maxval: Any, dtype: Any, name: str | None
) -> EagerTensor:
    """Draw numbers that are all as likely from a generator."""
    wanted = as_dtype(dtype)
    _check(wanted, (*FLOATS, int32, int64, uint32, uint64))
    if wanted.is_floating:
        maxval = 1 if maxval is None else maxval
        for bound in (minval, maxval):
            to_tensor(bound, wanted)
        drawn = run(_uniform, (), shape_input(shape, _uniform.name), wanted, source, name=name)
        return between(drawn, minval, maxval, name, name)
    if (minval is None) != (maxval is None):
        raise ValueError(
            f"For integer `dtype` argument {wanted}, argument `minval` and `maxval` must be both None or not None. "
            f"Got `minval`={minval} and `maxval`={maxval}."
        )
    if minval is None:
        return run(_full_int, (), shape_input(shape, _full_int.name), wanted, source, name=name)  # type: ignore[no-any-return]
    if wanted in (uint32, uint64):
        raise ValueError(
            f"Argument `dtype` got invalid value {wanted} when argument `minval` is not None. Please don't use "
            "unsigned integers in this case."
        )
    bounds = to_tensor(minval, wanted), to_tensor(maxval, wanted)
    return run(_uniform_int, bounds, shape_input(shape, _uniform_int.name), wanted, source, name=name)  # type: ignore[no-any-return]


def _check(dtype: DType, allowed: tuple[DType, ...]) -> None:
    if dtype not in allowed:
        raise ValueError(
            f"Argument `dtype` got invalid value {dtype}. Accepted dtypes are "
            f"({', '.join(f'tf.{each.name}' for each in allowed)})."
        )


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> EagerTensor:
    """Draw normal numbers, decided by ``seed``. As ``tf.random.stateless_normal``."""
    return normal_from(_source(seed), shape, mean, stddev, dtype, name)


def normal_from(
    source: Source, shape: Any, mean: Any, stddev: Any, dtype: Any, name: str | None
) -> EagerTensor:
    """Draw normal numbers from a generator."""
    return _moved(_normal, source, shape, mean, stddev, dtype, name)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> EagerTensor:
    """Draw normal numbers at most two standard deviations from the mean, decided by ``seed``.

    As ``tf.random.stateless_truncated_normal``.
    """
    return truncated_normal_from(_source(seed), shape, mean, stddev, dtype, name)


def truncated_normal_from(
    source: Source, shape: Any, mean: Any, stddev: Any, dtype: Any, name: str | None
) -> EagerTensor:
    """Draw normal numbers at most two standard deviations from the mean from a generator."""
    return _moved(_truncated, source, shape, mean, stddev, dtype, name)


def _moved(
    row: Operation, source: Source, shape: Any, mean: Any, stddev: Any, dtype: Any, name: str | None
) -> EagerTensor:
    wanted = as_dtype(dtype)
    middle, width = to_tensor(mean, wanted), to_tensor(stddev, wanted)
    lengths = shape_input(shape, row.name)
    check_attribute(row.name, "dtype", wanted, name)
    return add(multiply(run(row, (), lengths, wanted, source, name=name), width), middle, name)


def _more_seeds(seed: Array, *words: int, count: int) -> Array:
    numbers = generator_of(*seed.tolist(), *words).integers(0, 2**64, (count, 2), np.uint64)
    # The whole range of the type, as its bits.
    wide = numbers if seed.dtype.itemsize == 8 else (numbers >> np.uint64(32)).astype(np.uint32)
    return wide.view(seed.dtype)


def _split_shape(c: Inference, count: Any) -> list[Output]:
    c.same(c.ranked(0, 1)[0], 2)
    return c.one((number(count), 2))


def _fold_in_shape(c: Inference, data: Any) -> list[Output]:
    c.same(c.ranked(0, 1)[0], 2)
    return c.one((2,))


_split_row = operation(
    "StatelessSplit",
    lambda seed, count: _more_seeds(seed, 1, count=count),
    shape=_split_shape,
    fault=_seed_fault,
    takes=INDICES.__contains__,
)
_fold_row = operation(
    "StatelessFoldIn",
    lambda seed, data: _more_seeds(seed, 2, data, count=1)[0],
    shape=_fold_in_shape,
    fault=_seed_fault,
    takes=INDICES.__contains__,
)


def split(seed: Any, num: Any = 2, alg: str = "auto_select") -> EagerTensor:
    """Make seeds of one that have nothing to do with it or each other. As ``tf.random.split``.

    Raises:
        InvalidArgumentError: ``seed`` is not two numbers.
    """
    return run(_split_row, (to_tensor(seed),), number_argument(num, "num"))  # type: ignore[no-any-return]


def fold_in(seed: Any, data: Any, alg: str = "auto_select") -> EagerTensor:
    """Make another seed of one and a number. As ``tf.random.fold_in``.

    Raises:
        InvalidArgumentError: ``seed`` is not two numbers.
    """
    return run(_fold_row, (to_tensor(seed),), number_argument(data, "data"))  # type: ignore[no-any-return]


_categorical_row = operation(
    "StatelessMultinomial", draws.categories, shape=categories_shape, fault=categorical_row.fault
)


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = int64, name: str | None = None
) -> EagerTensor:
    """Draw numbers of columns by weight, decided by ``seed``. As ``tf.random.stateless_categorical``.

    See ``tf.random.categorical``.
    """
    samples, wanted = number_argument(num_samples, "num_samples"), as_dtype(dtype)
    check_attribute(_categorical_row.name, "output_dtype", wanted, name)
    return run(  # type: ignore[no-any-return]
        _categorical_row, (to_tensor(logits),), samples, wanted, _source(seed), name=name
    )


__all__ = [
    "fold_in",
    "split",
    "stateless_categorical",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
]
