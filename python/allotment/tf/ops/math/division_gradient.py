"""Gradients of quotients and remainders, and of products and quotients in which a zero wins."""

from typing import Any

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.autodiff.broadcasting import of_pair
from allotment.tf.ops.autodiff.differentiation import not_differentiable
from allotment.tf.ops.math.arithmetic import square
from allotment.tf.ops.math.comparison import not_equal
from allotment.tf.ops.math.complex_numbers import conj
from allotment.tf.ops.math.division import divide_no_nan, floordiv
from allotment.tf.ops.math.guarded import xdivy, xlog1py, xlogy

of_pair(
    "RealDiv",
    lambda upstream, x, y: upstream / conj(y),
    lambda upstream, x, y: upstream * conj(-x / y / y),
)
of_pair(
    "DivNoNan",
    lambda upstream, x, y: divide_no_nan(upstream, conj(y)),
    lambda upstream, x, y: upstream * conj(divide_no_nan(divide_no_nan(-x, y), y)),
)
of_pair("FloorMod", lambda upstream, x, y: upstream, lambda upstream, x, y: -upstream * floordiv(x, y))


def _not_zero(x: Any) -> Any:
    return cast(not_equal(x, 0), x._dtype)


of_pair(
    "Xlogy",
    lambda upstream, x, y: upstream * conj(xlogy(_not_zero(x), y)),
    lambda upstream, x, y: upstream * conj(xdivy(x, y)),
)
of_pair(
    "Xlog1py",
    lambda upstream, x, y: upstream * conj(xlog1py(_not_zero(x), y)),
    lambda upstream, x, y: upstream * conj(xdivy(x, y + 1)),
)
of_pair(
    "Xdivy",
    lambda upstream, x, y: upstream * conj(xdivy(_not_zero(x), y)),
    lambda upstream, x, y: upstream * conj(xdivy(-x, square(y))),
)
of_pair("NextAfter", lambda upstream, x, y: upstream, lambda upstream, x, y: upstream * 0, inputs=False)

not_differentiable("FloorDiv", "TruncateDiv")

__all__: list[str] = []
