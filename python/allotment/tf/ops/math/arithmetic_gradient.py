"""Gradients of element-wise arithmetic."""

from typing import Any

import numpy as np

from allotment.tf.ops.array.creation import ones_like, zeros, zeros_like
from allotment.tf.ops.autodiff.broadcasting import of_pair, shape_of, summed_to
from allotment.tf.ops.autodiff.derivatives import by_input, with_zeros
from allotment.tf.ops.autodiff.differentiation import Call, Outline, gradient, not_differentiable
from allotment.tf.ops.indexing.indexed_slices import IndexedSlices, dense
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.math.arithmetic import multiply_no_nan, sign
from allotment.tf.ops.math.comparison import not_equal
from allotment.tf.ops.math.complex_numbers import complex as complex_of
from allotment.tf.ops.math.complex_numbers import conj
from allotment.tf.ops.math.division import divide_no_nan
from allotment.tf.ops.math.real import log


@gradient("AddV2", inputs=False, slices=True)
def _add(call: Call, upstream: Any) -> list[Any]:
    return [_of_term(call, upstream, place) if call.wanted[place] else None for place in (0, 1)]


@gradient("Sub", inputs=False, slices=True)
def _subtract(call: Call, upstream: Any) -> list[Any]:
    return [
        _of_term(call, upstream, 0) if call.wanted[0] else None,
        _of_term(call, -upstream, 1) if call.wanted[1] else None,
    ]


def _of_term(call: Call, upstream: Any, place: int) -> Any:
    if isinstance(upstream, IndexedSlices) and _keeps_slices(call, place):
        return upstream
    return summed_to(dense(upstream), shape_of(call.inputs[place]))


def _keeps_slices(call: Call, place: int) -> bool:
    """Whether slices stay slices in TensorFlow: eagerly beside a constant number on the right alone."""
    x, y = call.inputs
    if isinstance(x, Outline) or isinstance(y, Outline):
        return place == 0 and not call.wanted[1] and len(shape_of(y)) == 0
    own, other = x.shape, y.shape
    if not own.is_fully_defined() or not other.is_fully_defined():
        return False
    shape = tuple(call.inputs[place].shape)
    return np.broadcast_shapes(tuple(own), tuple(other)) == shape


of_pair(
    "Mul",
    lambda upstream, x, y: upstream * conj(y),
    lambda upstream, x, y: upstream * conj(x),
    inputs="beside others",
)
of_pair(
    "MulNoNan",
    lambda upstream, x, y: multiply_no_nan(upstream, conj(y)),
    lambda upstream, x, y: multiply_no_nan(conj(x), upstream),
    inputs="beside others",
)
# Of two equal elements the first one is the larger, and the smaller.
of_pair(
    "Maximum",
    lambda upstream, x, y: where(x >= y, upstream, 0),
    lambda upstream, x, y: where(~(x >= y), upstream, 0),
)
of_pair(
    "Minimum",
    lambda upstream, x, y: where(x <= y, upstream, 0),
    lambda upstream, x, y: where(~(x <= y), upstream, 0),
)
of_pair(
    "SquaredDifference",
    lambda upstream, x, y: upstream * (2 * (x - y)),
    lambda upstream, x, y: upstream * (2 * (y - x)),
)


@gradient("Pow", outputs=True)
def _pow(call: Call, upstream: Any) -> list[Any]:
    (x, y), power = call.inputs, conj(call.outputs[0])
    by_x = by_y = None
    if call.wanted[0]:
        exponent = conj(y)
        by_x = summed_to(upstream * exponent * conj(x) ** (exponent - 1), shape_of(x))
    if call.wanted[1]:
        base = conj(x)
        # A base that has no logarithm counts as one that the power does not depend on.
        has_log = not_equal(base, 0) if x._dtype.is_complex else base > 0
        by_y = where(has_log, log(where(has_log, base, ones_like(base))), zeros_like(base))
        by_y = summed_to(upstream * power * by_y, shape_of(y))
    return [by_x, by_y]


@gradient("Neg", inputs=False, slices=True)
def _negative(call: Call, upstream: Any) -> Any:
    return -upstream


@gradient("Sign", inputs=False)
def _sign(call: Call, upstream: Any) -> Any:
    return zeros(shape_of(call.inputs[0]), call.inputs[0]._dtype)


by_input("Square", lambda x: 2 * x)
_reciprocal_grad = with_zeros("Reciprocal", lambda y, upstream: -upstream * y * y)


@gradient("ReciprocalGrad")
def _of_reciprocal_grad(call: Call, upstream: Any) -> list[Any]:
    y, given = conj(call.inputs[0]), call.inputs[1]
    return [-2 * conj(upstream) * given * y, _reciprocal_grad(y, upstream)]


by_input("Abs", sign)


@gradient("ComplexAbs", outputs=True)
def _complex_abs(call: Call, upstream: Any) -> Any:
    x, y = call.inputs[0], call.outputs[0]
    return divide_no_nan(_as_complex(upstream) * x, _as_complex(y))


def _as_complex(part: Any) -> Any:
    return complex_of(part, zeros_like(part))


# Joins texts.
not_differentiable("Add")

__all__: list[str] = []
