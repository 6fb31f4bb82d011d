"""Comparison of elements, and tests of single ones."""

from typing import Any

import numpy as np

from allotment.tf.ops.public import public_binary, public_unary
from allotment.tf.tensors.dtype import bool as bool_

#: Every type, texts included, is equal to something.
_ANYTHING: Any = {"result": bool_}
_ORDERED: Any = {"result": bool_}
_FLOAT: Any = {"result": bool_}

equal = public_binary(
    "equal",
    "Equal",
    np.equal,
    "Whether elements are equal; a NaN is to nothing. As ``tf.equal``.",
    **_ANYTHING,
)
not_equal = public_binary(
    "not_equal", "NotEqual", np.not_equal, "Whether elements differ. As ``tf.not_equal``.", **_ANYTHING
)
less = public_binary("less", "Less", np.less, "Whether ``x`` is below ``y``. As ``tf.less``.", **_ORDERED)
less_equal = public_binary(
    "less_equal",
    "LessEqual",
    np.less_equal,
    "Whether ``x`` is at most ``y``. As ``tf.less_equal``.",
    **_ORDERED,
)
greater = public_binary(
    "greater", "Greater", np.greater, "Whether ``x`` is above ``y``. As ``tf.greater``.", **_ORDERED
)
greater_equal = public_binary(
    "greater_equal",
    "GreaterEqual",
    np.greater_equal,
    "Whether ``x`` is at least ``y``. As ``tf.greater_equal``.",
    **_ORDERED,
)

is_nan = public_unary("is_nan", "IsNan", np.isnan, "Whether it is a NaN. As ``tf.math.is_nan``.", **_FLOAT)
is_inf = public_unary("is_inf", "IsInf", np.isinf, "Whether it is infinite. As ``tf.math.is_inf``.", **_FLOAT)
is_finite = public_unary(
    "is_finite",
    "IsFinite",
    np.isfinite,
    "Whether it is neither infinite nor a NaN. As ``tf.math.is_finite``.",
    **_FLOAT,
)

__all__ = [
    "equal",
    "greater",
    "greater_equal",
    "is_finite",
    "is_inf",
    "is_nan",
    "less",
    "less_equal",
    "not_equal",
]
