"""Going through data sets."""

from collections.abc import Iterator
from typing import Any, Self

from allotment.errors import OutOfRangeError


class ElementIterator:
    """Goes through elements once, and gives the next one in Python's way or in TensorFlow's."""

    def __init__(self, elements: Iterator[Any]) -> None:
        self._elements = elements

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


class OwnedIterator(ElementIterator):
    """Goes through a data set once. As the iterators of ``tf.data``."""

    def __init__(self, elements: Iterator[Any], element_spec: Any) -> None:
        super().__init__(elements)
        self._element_spec = element_spec

    @property
    def element_spec(self) -> Any:
        """Types and shapes of the elements."""
        return self._element_spec()


__all__ = ["ElementIterator", "OwnedIterator"]
