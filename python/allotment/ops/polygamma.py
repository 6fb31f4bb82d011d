"""Derivatives of digamma, and the zeta function of Hurwitz that they are made of."""

import math
from typing import Any, Final

import numpy as np

from allotment.dtypes import float32, float64
from allotment.ops.arrays import Array
from allotment.ops.execute import same_shapes
from allotment.ops.inverse_special import digamma_of
from allotment.ops.public import public_binary

#: Terms up to here, and as far again as the power is high, are added one by one; the series behind is exact to the
#: last digit or two then. Of higher powers than the second number, terms that far on are nothing.
_FAR: Final = (12, 200)
#: Bernoulli's numbers, each divided by the factorial of its index.
_BERNOULLI: Final = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
)


def _zeta_of(x: Array, q: Array) -> Any:
    power, start = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(q, np.float64))
    # Below zero the sum starts on the other side, which only whole powers do not mind.
    enough = _FAR[0] + np.clip(np.nan_to_num(power), 0, _FAR[1])
    steps = np.maximum(np.ceil(enough - np.where(np.isfinite(start), start, 0)), 0)
    total, place = np.zeros(power.shape), start.copy()
    for step in range(int(steps.max(initial=0))):
        more = step < steps
        total += np.where(more, np.power(np.where(more, place, 1), -power), 0)
        place = np.where(more, place + 1, place)
    last = np.power(place, -power)
    total += last * place / (power - 1) + last / 2
    factor = power * last / place
    for index, number in enumerate(_BERNOULLI):
        total += number * factor
        rank = 2 * index + 1
        factor = factor * (power + rank) * (power + rank + 1) / np.square(place)
    # At a pole only even powers have the same sign on both sides.
    on_pole = (start <= 0) & (start == np.floor(start))
    pole = (power == 1) | (on_pole & (power % 2 == 0))
    undefined = (power < 1) | (on_pole & ~pole) | ((start <= 0) & (power != np.floor(power)))
    return np.where(undefined, np.nan, np.where(pole, np.inf, total)).astype(x.dtype)


def _polygamma_of(a: Array, x: Array) -> Any:
    order, place = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    known = (order >= 0) & (order == np.floor(order))
    n = np.where(known & (order > 0), order, 1)
    factorial = np.vectorize(math.gamma, otypes=[np.float64])(np.minimum(n + 1, 170.0))
    value = np.where(n % 2 == 1, 1, -1) * factorial * _zeta_of(n + 1, place)
    value = np.where(order == 0, digamma_of(place), value)
    return np.where(known, value, np.nan).astype(x.dtype)


_FIELDS: Any = {"takes": (float32, float64).__contains__, "fault": same_shapes}

zeta = public_binary(
    "zeta",
    "Zeta",
    _zeta_of,
    "The sum of ``(q + k) ** -x`` over all ``k`` from zero on. As ``tf.math.zeta``.",
    **_FIELDS,
)
polygamma = public_binary(
    "polygamma",
    "Polygamma",
    _polygamma_of,
    "The derivative of order ``a``, a whole number, of ``digamma`` at ``x``. As ``tf.math.polygamma``.",
    **_FIELDS,
)

__all__ = ["polygamma", "zeta"]
