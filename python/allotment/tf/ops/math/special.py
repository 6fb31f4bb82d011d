"""Special functions that NumPy lacks: SciPy's ufuncs, imported at the first call."""

import math
from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from allotment.tf.ops.arrays import Array, as_array, in_single, is_host
from allotment.tf.ops.math.arithmetic import multiply, negative
from allotment.tf.ops.math.from_scipy import from_scipy
from allotment.tf.ops.public import public_unary
from allotment.tf.tensors.tensor import EagerTensor

#: Elements that are Python numbers at one time.
_BLOCK: Final = 4096


def scipy_ufunc(name: str) -> np.ufunc:
    """Return a function of ``scipy.special``."""
    return cast(np.ufunc, from_scipy("special", name))


def by_scipy(name: str) -> Callable[[Array], Any]:
    """Make a kernel of a function of ``scipy.special``; halves are computed in single precision."""
    return in_single(lambda x: scipy_ufunc(name)(x))


def by_libm(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Make a kernel of a function of the C library, which is called for each element: slow, and exact."""

    def call(x: Array) -> Array:
        result = np.empty(x.shape, x.dtype, like=x)
        elements, results = x.reshape(-1), result.reshape(-1)
        for start in range(0, x.size, _BLOCK):
            block = elements[start : start + _BLOCK].tolist()
            results[start : start + _BLOCK] = np.fromiter(map(function, block), np.float64, len(block))
        return result

    return call


def _log_gamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        # At the poles, zero and the negative whole numbers, and where the value is too large.
        return math.inf


_log_gamma_by_libm = by_libm(_log_gamma)


def _lgamma_of(x: Array) -> Any:
    if x.dtype == np.float64 and is_host(x):
        # Near 1 and 2, where the value is near zero, SciPy's has an error of 1e-16 whatever the value.
        return _log_gamma_by_libm(x)
    result = as_array(by_scipy("gammaln")(x))
    np.copyto(result, np.inf, where=np.equal(x, -np.inf))
    return result


def digamma_of(x: Array) -> Any:
    """The derivative of ``lgamma``; NaN at its poles, zero among them."""
    result = as_array(by_scipy("psi")(x))
    np.copyto(result, np.nan, where=np.equal(x, 0))
    if x.dtype == np.float64:
        # Near its poles SciPy's has the error of the tangent of a large angle.
        distance = x - np.rint(x)
        near = np.less(x, 0) & np.less(np.abs(distance), 0.1) & (distance != 0)
        place = distance[near] * np.pi
        result[near] = by_scipy("psi")(1 - x[near]) - np.pi / np.tan(place)
    return result


erf = public_unary("erf", "Erf", by_scipy("erf"), "The error function. As ``tf.math.erf``.")
erfc = public_unary(
    "erfc",
    "Erfc",
    by_scipy("erfc"),
    "One minus the error function, exact where that is near one. As ``tf.math.erfc``.",
)
erfinv = public_unary(
    "erfinv", "Erfinv", by_scipy("erfinv"), "The inverse of ``erf``. As ``tf.math.erfinv``."
)
ndtri = public_unary(
    "ndtri",
    "Ndtri",
    by_scipy("ndtri"),
    "The quantile of the standard normal distribution. As ``tf.math.ndtri``.",
)
lgamma = public_unary(
    "lgamma",
    "Lgamma",
    _lgamma_of,
    "The logarithm of the gamma function's absolute value. As ``tf.math.lgamma``.",
)
digamma = public_unary(
    "digamma", "Digamma", digamma_of, "The derivative of ``lgamma``. As ``tf.math.digamma``."
)


def erfcinv(x: Any, name: str | None = None) -> EagerTensor:
    """The inverse of ``erfc``. As ``tf.math.erfcinv``, which has no kernel of its own."""
    return multiply(negative(ndtri(multiply(x, 0.5))), math.sqrt(0.5), name)


__all__ = [
    "by_libm",
    "digamma",
    "digamma_of",
    "erf",
    "erfc",
    "erfcinv",
    "erfinv",
    "lgamma",
    "ndtri",
    "scipy_ufunc",
]
