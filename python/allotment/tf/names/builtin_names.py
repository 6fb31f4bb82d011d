"""Operations that have the names of Python's built-in functions and types."""

from allotment.tf.ops.control.control import tuple_of as tuple
from allotment.tf.ops.indexing.slicing import slice_ as slice
from allotment.tf.ops.text.printing import print_ as print

__all__ = ["print", "slice", "tuple"]
