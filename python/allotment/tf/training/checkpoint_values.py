"""Finds the variables of an object with their attribute paths, which are the keys of a checkpoint."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor_shape import TensorShape
from allotment.tf.variables.variable import Variable


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a checkpoint that an object keeps without a variable, such as an optimizer's step count."""

    name: str
    dtype: DType
    #: Returns the current number.
    read: Callable[[], Any]
    #: Replaces the number.
    write: Callable[[Any], None]

    shape = TensorShape([])

    def numpy(self) -> Any:
        """Return the number as an array of rank 0."""
        return np.asarray(self.read(), self.dtype.numpy)

    def assign(self, value: Any) -> None:
        """Replace the number."""
        self.write(value)


def values_of(owner: Any) -> Iterator[tuple[str, Any]]:
    """Yield the variables and numbers of an object, each with its first key, such as ``model/dense/kernel``."""
    yield from _values_of_parts("", owner._checkpoint_parts(), {id(owner)})


def attributes(owner: Any, without: Iterable[str] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that may hold variables, in the order in which they were set.

    Args:
        owner: The object.
        without: Names of attributes to leave out.
    """
    left_out = frozenset(without)
    for name, value in tuple(vars(owner).items()):
        if name not in left_out and _may_hold(value):
            yield name, value


def _may_hold(value: Any) -> bool:
    return isinstance(value, Variable | list | tuple | Mapping) or hasattr(type(value), "_checkpoint_parts")


def _values_of_parts(key: str, parts: Iterable[tuple[str, Any]], seen: set[int]) -> Iterator[tuple[str, Any]]:
    for name, part in parts:
        yield from _values_of(f"{key}/{name}".strip("/"), part, seen)


def _values_of(key: str, part: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if isinstance(part, Number):
        yield key, part
        return
    if id(part) in seen or not _may_hold(part):
        return
    seen.add(id(part))
    if isinstance(part, Variable):
        yield key, part
    elif isinstance(part, Mapping):
        yield from _values_of_parts(key, ((str(name), each) for name, each in part.items()), seen)
    elif isinstance(part, list | tuple):
        yield from _values_of_parts(key, ((str(number), each) for number, each in enumerate(part)), seen)
    else:
        yield from _values_of_parts(key, part._checkpoint_parts(), seen)


__all__ = ["Number", "attributes", "values_of"]
