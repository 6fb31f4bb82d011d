"""Operations that have the names of Python's built-in functions and types."""

from allotment.tf.ops.control import tuple_of as tuple
from allotment.tf.ops.printing import print_ as print
from allotment.tf.ops.slicing import slice_ as slice

__all__ = ["print", "slice", "tuple"]
