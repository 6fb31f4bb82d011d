"""Products and quotients in which a zero wins, and other small functions of numbers."""

from typing import Any

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.array.layout import reshape
from allotment.tf.ops.arrays import Array, as_array, in_single
from allotment.tf.ops.convert import to_pair, to_tensor
from allotment.tf.ops.inference.common import broadcasting
from allotment.tf.ops.math.arithmetic import add, multiply, negative
from allotment.tf.ops.math.comparison import greater, greater_equal
from allotment.tf.ops.math.real import log1p_of
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.nn.activations import softplus
from allotment.tf.ops.public import binary, public_binary
from allotment.tf.ops.reduction.reduce import reduce_all
from allotment.tf.ops.table import operation, same_shapes
from allotment.tf.tensors.dtype import float32
from allotment.tf.tensors.indexed_slices import IndexedSlices
from allotment.tf.tensors.tensor import EagerTensor


def _zero_wins(function: Any) -> Any:
    def call(x: Array, y: Array) -> Array:
        result = as_array(function(x, y))
        np.copyto(result, 0, where=np.equal(x, 0))
        return result

    return in_single(call)


xlogy = public_binary(
    "xlogy",
    "Xlogy",
    _zero_wins(lambda x, y: np.multiply(x, np.log(y))),
    "``x * log(y)``, and zero where ``x`` is. As ``tf.math.xlogy``.",
)
xlog1py = public_binary(
    "xlog1py",
    "Xlog1py",
    _zero_wins(lambda x, y: np.multiply(x, log1p_of(y))),
    "``x * log(1 + y)``, and zero where ``x`` is. As ``tf.math.xlog1py``.",
)
xdivy = public_binary(
    "xdivy",
    "Xdivy",
    _zero_wins(np.true_divide),
    "``x / y``, and zero where ``x`` is. As ``tf.math.xdivy``.",
)

_nextafter = binary(operation("NextAfter", np.nextafter, shape=broadcasting, fault=same_shapes))


def nextafter(x1: Any, x2: Any, name: str | None = None) -> EagerTensor:
    """The float next to ``x1`` on the way to ``x2``. As ``tf.math.nextafter``."""
    # The type that TensorFlow's operation prefers; eagerly that of a tensor comes first.
    if isinstance(x1, int) and (isinstance(x2, int) or thread.state.graph is not None):
        x1 = to_tensor(x1, float32)
    return _nextafter(*to_pair(x1, x2), name)


def polyval(coeffs: Any, x: Any, name: str | None = None) -> EagerTensor:
    """The value of a polynomial; the first coefficient is that of the highest power. As ``tf.math.polyval``.

    Raises:
        ValueError: The coefficients are no list.
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    x = to_tensor(x)
    if not coeffs:
        return zeros_like(x, name=name)
    value = to_tensor(coeffs[0], like=x._dtype)
    for coefficient in coeffs[1:]:
        value = add(multiply(value, x), coefficient)
    return value


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> EagerTensor:
    """Multiply a tensor, or the rows of slices, by one number. As ``tf.scalar_mul``.

    Raises:
        ValueError: It is not one number.
    """
    if isinstance(x, IndexedSlices):
        return IndexedSlices(scalar_mul(scalar, x.values, name), x.indices, x.dense_shape)  # type: ignore[return-value]
    x = to_tensor(x)
    number = to_tensor(scalar, x._dtype)
    if number.ndim:
        raise ValueError(f"The input scalar must be a 0-D value. Received shape {number.shape}.")
    return multiply(number, x, name)


@in_name_scope("LogSigmoid")
def log_sigmoid(x: Any, name: str | None = None) -> EagerTensor:
    """The logarithm of ``sigmoid``. As ``tf.math.log_sigmoid``."""
    return negative(softplus(negative(x)), name)


def _steps(relation: Any, x: Any) -> EagerTensor:
    flat = reshape(x, [-1])
    return reduce_all(relation(flat[1:], flat[:-1]))


def is_non_decreasing(x: Any, name: str | None = None) -> EagerTensor:
    """Whether no element is below the one before. As ``tf.math.is_non_decreasing``."""
    return _steps(greater_equal, x)


def is_strictly_increasing(x: Any, name: str | None = None) -> EagerTensor:
    """Whether each element is above the one before. As ``tf.math.is_strictly_increasing``."""
    return _steps(greater, x)


__all__ = [
    "is_non_decreasing",
    "is_strictly_increasing",
    "log_sigmoid",
    "nextafter",
    "polyval",
    "scalar_mul",
    "xdivy",
    "xlog1py",
    "xlogy",
]
