"""``tf.bitwise``: bitwise operations on integers."""

from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.math.logical import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    invert,
    left_shift,
    right_shift,
)

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "right_shift",
]

refuse_other_names(__name__)
