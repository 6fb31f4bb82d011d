"""Functions that NumPy has not: the error function and the logarithm of the gamma function."""

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from allotment.ops.arrays import Array
from allotment.ops.element_types import FLOATS
from allotment.ops.public import public_unary

#: Elements that are Python numbers at one time.
_BLOCK: Final = 4096


def by_libm(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """The C library's function, element by element: slower than an approximation, and right to the last digit."""

    def call(x: Array) -> Array:
        result = np.empty(x.shape, x.dtype)
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


erf = public_unary(
    "erf", "Erf", by_libm(math.erf), "The error function. As ``tf.math.erf``.", takes=FLOATS.__contains__
)
erfc = public_unary(
    "erfc",
    "Erfc",
    by_libm(math.erfc),
    "One minus the error function, exact where that is near one. As ``tf.math.erfc``.",
    takes=FLOATS.__contains__,
)
lgamma = public_unary(
    "lgamma",
    "Lgamma",
    by_libm(_log_gamma),
    "The logarithm of the gamma function's absolute value. As ``tf.math.lgamma``.",
    takes=FLOATS.__contains__,
)

__all__ = ["erf", "erfc", "lgamma"]
