"""Shapes of what is drawn by chance."""

from typing import Any

from allotment.tf.ops.inference.shape_functions import (
    Dims,
    Inference,
    Output,
    lengths,
    number,
    numbers,
    shape_function,
)
from allotment.tf.tensors.dtype import int64


def _given(c: Inference, shape: Any) -> Dims:
    for each in numbers(shape) or ():
        if each is not None and each < -1:
            c.refuse(f"Dimension {each} must be >= 0")
    return lengths(shape)


@shape_function(
    "RandomStandardNormal",
    "RandomUniform",
    "StatelessRandomNormalV2",
    "StatelessRandomUniformFullIntV2",
    "StatelessRandomUniformV2",
    "StatelessTruncatedNormalV2",
    "TruncatedNormal",
)
def _drawn(c: Inference, shape: Any, dtype: Any, source: Any) -> list[Output]:
    return c.one(_given(c, shape), dtype)


@shape_function("RandomUniformInt", "StatelessRandomUniformIntV2")
def _integers(c: Inference, shape: Any, dtype: Any, source: Any) -> list[Output]:
    c.ranked(0, 0)
    c.ranked(1, 0)
    return c.one(_given(c, shape), dtype)


@shape_function("RandomPoissonV2")
def _poisson(c: Inference, shape: Any, dtype: Any, source: Any) -> list[Output]:
    return c.one(_behind(c, shape), dtype)


@shape_function("RandomGamma")
def _gamma(c: Inference, shape: Any, source: Any) -> list[Output]:
    return c.one(_behind(c, shape))


def _behind(c: Inference, shape: Any) -> Dims:
    first, rest = _given(c, shape), c.shape()
    return None if first is None or rest is None else first + rest


@shape_function("Multinomial", "StatelessMultinomial")
def _categories(c: Inference, samples: Any, dtype: Any, source: Any) -> list[Output]:
    return c.one((c.ranked(0, 2)[0], number(samples)), dtype)


@shape_function("StatelessRandomGetKeyCounter")
def _key(c: Inference) -> list[Output]:
    c.same(c.ranked(0, 1)[0], 2)
    return c.one((2,), int64)


@shape_function("StatelessSplit")
def _split(c: Inference, count: Any) -> list[Output]:
    c.same(c.ranked(0, 1)[0], 2)
    return c.one((number(count), 2))


@shape_function("StatelessFoldIn")
def _fold_in(c: Inference, data: Any) -> list[Output]:
    c.same(c.ranked(0, 1)[0], 2)
    return c.one((2,))


__all__: list[str] = []
