"""Truth values, and integers as rows of bits."""

from typing import Any

import numpy as np

from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_fixed_type
from allotment.tf.ops.inference.common import broadcasting, unchanged
from allotment.tf.ops.public import binary, public_binary, public_unary, unary
from allotment.tf.ops.table import operation, same_shapes
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.tensor import EagerTensor

_and = binary(operation("LogicalAnd", np.logical_and, shape=broadcasting, fault=same_shapes, result=bool_))
_or = binary(operation("LogicalOr", np.logical_or, shape=broadcasting, fault=same_shapes, result=bool_))
_not = unary(operation("LogicalNot", np.logical_not, shape=unchanged, result=bool_))


def logical_and(x: Any, y: Any, name: str | None = None) -> EagerTensor:
    """Whether both are true. As ``tf.logical_and``."""
    return _and(*to_fixed_type(bool_, x, y), name)


def logical_or(x: Any, y: Any, name: str | None = None) -> EagerTensor:
    """Whether one or both are true. As ``tf.logical_or``."""
    return _or(*to_fixed_type(bool_, x, y), name)


def logical_not(x: Any, name: str | None = None) -> EagerTensor:
    """Whether it is false. As ``tf.logical_not``."""
    return _not(*to_fixed_type(bool_, x), name)


def logical_xor(x: Any, y: Any, name: str | None = "LogicalXor") -> EagerTensor:
    """Whether exactly one is true. As ``tf.math.logical_xor``, which has no kernel of its own."""
    return logical_and(logical_or(x, y), logical_not(logical_and(x, y)), name)


bitwise_and = public_binary(
    "bitwise_and",
    "BitwiseAnd",
    np.bitwise_and,
    "The bits that are set in both. As ``tf.bitwise.bitwise_and``.",
)
bitwise_or = public_binary(
    "bitwise_or",
    "BitwiseOr",
    np.bitwise_or,
    "The bits that are set in one or both. As ``tf.bitwise.bitwise_or``.",
)
bitwise_xor = public_binary(
    "bitwise_xor",
    "BitwiseXor",
    np.bitwise_xor,
    "The bits that are set in exactly one. As ``tf.bitwise.bitwise_xor``.",
)
invert = public_unary("invert", "Invert", np.invert, "Flip every bit. As ``tf.bitwise.invert``.")


def _shift(shift: Any) -> Any:
    def function(x: Array, y: Array) -> Array:
        # A distance outside of the element's width is moved to its ends, as TensorFlow's CPU does.
        distance = np.clip(y, 0, x.dtype.itemsize * 8 - 1)
        return shift(x, distance)  # type: ignore[no-any-return]

    return function


left_shift = public_binary(
    "left_shift",
    "LeftShift",
    _shift(np.left_shift),
    "Move bits up; a distance beyond the width is cut to it. As ``tf.bitwise.left_shift``.",
)
right_shift = public_binary(
    "right_shift",
    "RightShift",
    _shift(np.right_shift),
    "Move bits down, keeping the sign; a distance beyond the width is cut to it. As ``tf.bitwise.right_shift``.",
)

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "right_shift",
]
