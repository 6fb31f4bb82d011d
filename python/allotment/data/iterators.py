"""Going through data sets."""

from collections.abc import Iterator
from typing import Any

from allotment.errors import OutOfRangeError


class OwnedIterator:
    """Goes through a data set once. As the iterators of ``tf.data``."""

    def __init__(self, elements: Iterator[Any], element_spec: Any) -> None:
        self._elements = elements
        self._element_spec = element_spec

    @property
    def element_spec(self) -> Any:
        """Types and shapes of the elements."""
        return self._element_spec()

    def __iter__(self) -> "OwnedIterator":
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
        except StopIteration:
            raise OutOfRangeError(None, None, "End of sequence [Op:IteratorGetNext] name: ") from None


__all__ = ["OwnedIterator"]
