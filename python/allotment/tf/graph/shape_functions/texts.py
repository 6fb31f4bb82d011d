"""Shapes of operations on texts that are not by element."""

from typing import Any

from allotment.tf.graph.shape_functions.elementwise import unchanged
from allotment.tf.ops.inference.shape_functions import Inference, Output, shape_function
from allotment.tf.tensors.dtype import string

shape_function("StaticRegexReplace", "StaticRegexFullMatch")(unchanged)


@shape_function("StringJoin")
def _join(c: Inference, separator: bytes) -> list[Output]:
    shapes = c.shapes()
    # Scalars go with every shape, and any input may be one whose shape is not known.
    known = c.all_merged(each for each in shapes if each != ())
    if known is None:
        return c.one(None if None in shapes else ())
    return c.one(known)


@shape_function("Substr")
def _substr(c: Inference, unit: str) -> list[Output]:
    first = c.merged(c.shape(1), c.shape(2))
    return c.one(c.broadcast(c.shape(0), first))


@shape_function("StringFormat")
def _format(c: Inference, **words: Any) -> list[Output]:
    return [(string, ())]


__all__: list[str] = []
