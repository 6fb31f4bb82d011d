"""Special functions that neither NumPy nor the C library has: digamma, and what undoes the error function."""

import math
from typing import Any

import numpy as np

from allotment.ops.arrays import Array
from allotment.ops.element_types import FLOATS
from allotment.ops.public import public_unary
from allotment.ops.special import by_libm

#: Terms of digamma's series in ``1 / x**2``; from 10 on their sum is exact to the last digit but one.
_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def digamma_of(x: Array) -> Array:
    given = np.asarray(x, np.float64)
    # Left of one half by reflection, where the poles are.
    mirrored = given < 0.5
    place = np.where(mirrored, 1 - given, given)
    total = np.zeros_like(place)
    for _ in range(10):
        small = place < 10
        total -= np.where(small, 1 / np.where(small, place, 1), 0)
        place = np.where(small, place + 1, place)
    square, power = 1 / np.square(place), np.ones_like(place)
    total += np.log(place) - 0.5 / place
    for term in _SERIES:
        power = power * square
        total -= term * power
    tangent = np.tan(np.pi * np.remainder(given, 1))
    poles = mirrored & (given == np.floor(given))
    reflected = total - np.pi / np.where(poles, 1, np.where(mirrored, tangent, 1))
    return np.where(poles, np.nan, np.where(mirrored, reflected, total)).astype(x.dtype)


def _complement_inverse(q: float) -> float:
    """Where the complementary error function is ``q``, from 0 to 1."""
    if q == 0:
        return math.inf
    if q == 1:
        return 0.0
    size = -math.log(q * (2 - q))
    # Winitzki's approximation; the steps of Newton's method, on logarithms, do the rest.
    half = 2 / (math.pi * 0.147) - size / 2
    y = math.sqrt(math.sqrt(half * half + size / 0.147) - half)
    for _ in range(8):
        value = math.erfc(y)
        step = (math.log(value) - math.log(q)) * value * math.sqrt(math.pi) / (2 * math.exp(-y * y))
        y += step
        if abs(step) <= 1e-16 * y:
            break
    return y


def _erf_inverse(x: float) -> float:
    size = abs(x)
    if not size <= 1:
        return math.nan
    if size >= 0.5:
        return math.copysign(_complement_inverse(1 - size), x)
    y = size * math.sqrt(math.pi) / 2
    for _ in range(8):
        step = (math.erf(y) - size) * math.sqrt(math.pi) / (2 * math.exp(-y * y))
        y -= step
        if abs(step) <= 1e-16 * y:
            break
    return math.copysign(y, x)


def _erfc_inverse(q: float) -> float:
    if not 0 <= q <= 2:
        return math.nan
    return (
        _complement_inverse(q)
        if q <= 0.5
        else -_complement_inverse(2 - q)
        if q >= 1.5
        else _erf_inverse(1 - q)
    )


def _normal_quantile(p: float) -> float:
    return 0.0 - math.sqrt(2) * _erfc_inverse(2 * p)


_FLOATS: Any = {"takes": FLOATS.__contains__}

digamma = public_unary(
    "digamma", "Digamma", digamma_of, "The slope of ``lgamma``. As ``tf.math.digamma``.", **_FLOATS
)
erfinv = public_unary(
    "erfinv", "Erfinv", by_libm(_erf_inverse), "What undoes ``erf``. As ``tf.math.erfinv``.", **_FLOATS
)
ndtri = public_unary(
    "ndtri",
    "Ndtri",
    by_libm(_normal_quantile),
    "Below which number a share of the normal distribution lies. As ``tf.math.ndtri``.",
    **_FLOATS,
)
erfcinv = public_unary(
    "erfcinv", "Erfcinv", by_libm(_erfc_inverse), "What undoes ``erfc``. As ``tf.math.erfcinv``.", **_FLOATS
)

__all__ = ["digamma", "erfcinv", "erfinv", "ndtri"]
