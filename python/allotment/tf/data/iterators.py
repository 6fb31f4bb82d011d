"""Iterators over data sets."""

from collections.abc import Callable, Iterator
from typing import Any, Self

from allotment.errors import OutOfRangeError
from allotment.tf.data.optional import Optional
from allotment.tf.data.structure import spec_of


class ElementIterator:
    """An iterator over elements, with Python's and TensorFlow's methods for the next one.

    Args:
        elements: The elements.
        element_spec: Finds their types and shapes.
    """

    def __init__(self, elements: Iterator[Any], element_spec: Callable[[], Any]) -> None:
        self._elements = elements
        self._element_spec = element_spec

    @property
    def element_spec(self) -> Any:
        """Types and shapes of the elements."""
        return self._element_spec()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    def get_next(self) -> Any:
        """Return the next element.

        Raises:
            OutOfRangeError: There is none.
        """
        try:
            return next(self._elements)
        except StopIteration as error:
            error.__traceback__ = None
            raise OutOfRangeError(None, None, "End of sequence [Op:IteratorGetNext] name: ") from None

    def get_next_as_optional(self) -> Optional:
        """Return the next element as a ``tf.experimental.Optional``, without a value after the last element."""
        try:
            value = next(self._elements)
        except StopIteration:
            return Optional._of(None, False, self.element_spec)
        return Optional._of(value, True, self._spec_of(value))

    #: Finds types and shapes of one element.
    _spec_of = staticmethod(spec_of)


class OwnedIterator(ElementIterator):
    """An iterator over a data set. As the iterators of ``tf.data``."""


__all__ = ["ElementIterator", "OwnedIterator"]
