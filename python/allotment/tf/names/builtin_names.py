"""Operations named like Python's built-in functions and types: ``tf.print``, ``tf.slice``, ``tf.tuple``."""

from allotment.tf.ops.control.control import tuple_of as tuple
from allotment.tf.ops.indexing.slicing import slice_ as slice
from allotment.tf.ops.text.printing import print_ as print

__all__ = ["print", "slice", "tuple"]
