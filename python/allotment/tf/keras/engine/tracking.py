"""The layers and variables among the attributes of an object and in their lists, tuples and dictionaries.

They are searched on each call: a list may have grown since it was set.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from allotment.tf.variables.variable import Variable


def found_in(owner: Any, kind: type | tuple[type, ...]) -> Iterator[Any]:
    """Yield the objects of a class among the attributes, in the order of the attributes."""
    for value in tuple(vars(owner).values()):
        yield from _found(value, kind)


def _found(value: Any, kind: type | tuple[type, ...]) -> Iterator[Any]:
    if isinstance(value, kind):
        yield value
    elif isinstance(value, Mapping):
        for each in tuple(value.values()):
            yield from _found(each, kind)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _found(each, kind)


def without_repeats(values: Iterator[Any]) -> list[Any]:
    """Return the objects without repetitions."""
    return list({id(value): value for value in values}.values())


def own_variables(owner: Any) -> list[Variable]:
    """Return the variables among the attributes, trainable ones first."""
    found = without_repeats(found_in(owner, Variable))
    return sorted(found, key=lambda variable: not variable.trainable)


__all__ = ["found_in", "own_variables", "without_repeats"]
