"""Gradient of what is drawn from gamma distributions: how a draw moves with its parameter, at the same probability."""

from typing import Any, Final

import numpy as np

from allotment.tf.ops.arrays import Array, as_array
from allotment.tf.ops.autodiff.broadcasting import shape_of, summed_to
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import broadcasting
from allotment.tf.ops.math.special import digamma_of
from allotment.tf.ops.table import operation

#: From here on a draw is taken for a normal one's cube, which is right to five digits and more.
_LARGE: Final = 1e4


def _moved(alpha: Array, sample: Array) -> Any:
    a, z = np.broadcast_arrays(alpha.astype(np.float64), sample.astype(np.float64))
    known = (a > 0) & (z > 0) & np.isfinite(z)
    small = known & (a < _LARGE)
    moved = np.where(known, _of_normal(np.where(known, a, 1), np.where(known, z, 1)), np.nan)
    moved[small] = _of_series(a[small], z[small])
    # Of a draw that was too small for its type nothing is left to move.
    return np.where((a > 0) & (z == 0), 0, moved).astype(sample.dtype)


def _of_series(a: Array, z: Array) -> Array:
    """The slope of the probability to be below ``z``, divided by the density there: both from the same series."""
    term, slope = 1 / a, np.log(z) - digamma_of(a + 1)
    total, place = term * slope, a + 1
    while np.any(np.abs(term * slope) > 1e-17 * np.abs(total)) or np.any(place < z):
        term, slope = term * z / place, slope - 1 / place
        total, place = total + term * slope, place + 1
    return as_array(-z * total)


def _of_normal(a: Array, z: Array) -> Array:
    # z = a (1 - 1 / 9a + e / 3 √a)³ with a normal e that stays (Wilson and Hilferty).
    root = np.cbrt(z / a)
    slope = 1 / (9 * a * a) - (root - 1 + 1 / (9 * a)) / (2 * a)
    return as_array(root**3 + 3 * a * root**2 * slope)


_row = operation("RandomGammaGrad", _moved, shape=broadcasting)


@gradient("RandomGamma", outputs=True)
def _gamma(call: Call, upstream: Any) -> Any:
    alpha, drawn = call.inputs[0], call.outputs[0]
    return summed_to(upstream * run(_row, (alpha, drawn)), shape_of(alpha))


__all__: list[str] = []
