"""Texts. As ``tf.strings``."""

from allotment.ops.texts import as_string, join, length, lower, strip, to_number, upper

__all__ = ["as_string", "join", "length", "lower", "strip", "to_number", "upper"]
