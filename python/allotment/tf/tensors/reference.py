"""References to tensors and variables for sets and dictionaries, and the text of their values."""

from typing import Any

import numpy.typing as npt


class Reference:
    """Hashable reference to a tensor or variable; references to the same object are equal."""

    __slots__ = ("_referent",)

    def __init__(self, referent: Any) -> None:
        self._referent = referent

    def deref(self) -> Any:
        """Return the tensor or variable."""
        return self._referent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._referent is other._referent

    def __hash__(self) -> int:
        return id(self._referent)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._referent!r}>"


def array_repr(array: npt.NDArray[Any]) -> str:
    """Return the text of an array in the ``repr`` of a tensor; several lines start on a new line."""
    if array.ndim == 0:
        # As in TensorFlow, a float32 scalar shows all its digits as a double.
        return repr(array[()] if array.dtype == object else array.item())
    text = repr(array)
    return "\n" * ("\n" in text) + text
