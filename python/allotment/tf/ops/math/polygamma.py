"""Derivatives of digamma, and Hurwitz's zeta function that they are made of: in the steps of TensorFlow's kernel."""

import math
from typing import Any, Final

import numpy as np

from allotment.tf.ops.arrays import Array, as_array, is_host
from allotment.tf.ops.math.special import by_libm, digamma_of, scipy_ufunc
from allotment.tf.ops.public import public_binary
from allotment.tf.ops.table import same_shapes

#: Factorials of even numbers divided by Bernoulli's numbers: the divisors of Euler and Maclaurin's series.
_DIVISORS: Final = (
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1.8924375803183791606e9,
    7.47242496e10,
    -2.950130727918164224e12,
    1.1646782814350067249e14,
    -4.5979787224074726105e15,
    1.8152105401943546773e17,
    -7.1661652561756670113e18,
)
#: Terms that TensorFlow adds one by one in single precision, wherever the sum starts.
_TERMS: Final = 9
#: Left of here SciPy's sum, of a term for each whole number up to zero, takes too long.
_FAR: Final = -1e4


def _zeta_of(x: Array, q: Array) -> Any:
    power, start = np.broadcast_arrays(x, q)
    total = (_in_single if x.dtype == np.float32 else _in_double)(power, start)
    at_pole = np.less_equal(start, 0) & (start == np.floor(start))
    whole = power == np.floor(power)
    # At a pole only even powers have the same sign on both sides.
    even = whole & ((np.fmod(power, 2) == 0) | np.isinf(power))
    np.copyto(total, np.where(even, np.inf, np.nan), where=at_pole)
    np.copyto(total, np.nan, where=np.less_equal(start, 0) & ~whole)
    np.copyto(total, np.nan, where=np.less(power, 1) | np.isnan(power) | np.isnan(start))
    np.copyto(total, np.inf, where=power == 1)
    return total


def _in_double(power: Array, start: Array) -> Array:
    zeta, far = scipy_ufunc("zeta"), np.less(start, _FAR)
    total = as_array(zeta(power, np.where(far, 1, start)))
    # All terms but the first are nothing beside it, and it may be zero or infinite.
    lost = np.isnan(total) & np.isfinite(power) & np.greater(power, 1) & np.greater(start, 0)
    np.copyto(total, np.power(start, -power), where=lost)
    if far.any():
        # The terms up to zero are a sum to the right of zero, read backwards.
        steps = np.ceil(-np.where(far, start, 0))
        first = start + steps
        sign = np.where(np.fmod(power, 2) == 0, 1, -1)
        passed = sign * (zeta(power, 1 - first) - zeta(power, 1 - first + steps))
        np.copyto(total, zeta(power, first) + passed, where=far & np.isfinite(start))
    endless = np.where(start > 1, 0, np.where(start == 1, 1, np.inf))
    np.copyto(total, endless, where=np.isposinf(power))
    return total


def _in_single(power: Array, start: Array) -> Array:
    """The first terms, then Euler and Maclaurin's series, until a term no longer counts."""
    epsilon = np.finfo(np.float32).eps / 2
    total = _power(start, power)
    place, term, done = start, total, np.zeros(total.shape, np.bool_, like=total)
    for _ in range(_TERMS):
        place = np.where(done, place, place + 1)
        term = np.where(done, term, _power(place, power))
        total = np.where(done, total, total + term)
        done |= np.abs(term / total) < epsilon
    # Behind a term that is zero there is nothing, and the factor of the series may be infinite.
    done |= term == 0
    rest = _flushed(_flushed(term * place) / (power - 1)) - np.float32(0.5) * term
    total = np.where(done, total, total + rest)
    factor = np.ones_like(total)
    for index, divisor in enumerate(_DIVISORS):
        factor = factor * (power + np.float32(2 * index))
        term = _flushed(term / place)
        more = _flushed(_flushed(factor * term) / np.float32(divisor))
        total = np.where(done, total, total + more)
        done |= np.abs(more / total) < epsilon
        factor = factor * (power + np.float32(2 * index + 1))
        term = _flushed(term / place)
    return as_array(total)


def _power(base: Array, exponent: Array) -> Array:
    return _flushed(np.power(base, -exponent))


def _flushed(values: Array) -> Array:
    """Zeros in the place of denormal numbers."""
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.float32(0), values)


_log_gamma_by_libm = by_libm(lambda x: math.lgamma(x) if 0 < x < 1e305 else x)


def _log_gamma(x: Array) -> Any:
    if is_host(x):
        return _log_gamma_by_libm(x)
    return np.where((x > 0) & (x < 1e305), scipy_ufunc("gammaln")(x), x)


def _polygamma_of(a: Array, x: Array) -> Any:
    order, place = np.broadcast_arrays(a, x)
    known = np.greater_equal(order, 0) & (order == np.floor(order))
    factorial = np.exp(_log_gamma(as_array(order + 1).astype(x.dtype, copy=False)))
    sign = np.where(np.fmod(order + 1, 2) == 1, -1, 1).astype(x.dtype)
    value = as_array(sign * factorial * _zeta_of(as_array(order + 1).astype(x.dtype, copy=False), place))
    np.copyto(value, digamma_of(place), where=order == 0)
    np.copyto(value, np.nan, where=~known)
    return value


_FIELDS: Any = {"fault": same_shapes}

_zeta = public_binary("zeta", "Zeta", _zeta_of, "", **_FIELDS)
_polygamma = public_binary("polygamma", "Polygamma", _polygamma_of, "", **_FIELDS)


def zeta(x: Any, q: Any, name: str | None = None) -> Any:
    """The sum of ``(q + k) ** -x`` over all ``k`` from zero on. As ``tf.math.zeta``."""
    return _zeta(x, q, name)


def polygamma(a: Any, x: Any, name: str | None = None) -> Any:
    """The derivative of order ``a``, a whole number, of ``digamma`` at ``x``. As ``tf.math.polygamma``."""
    return _polygamma(a, x, name)


__all__ = ["polygamma", "zeta"]
