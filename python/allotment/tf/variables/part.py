"""Parts of variables: what ``variable[...]`` returns."""

from typing import Any, Protocol

from allotment.tf.ops.indexing.slicing import Index
from allotment.tf.tensors.tensor import EagerTensor, key_of


class HasParts(Protocol):
    """A variable, parts of which can be assigned."""

    def _assign_part(self, value: Any, index: Index, name: str | None) -> Any: ...


class VariablePart(EagerTensor):
    """A part of a variable that was read: a tensor, with a way back into the variable."""

    __slots__ = ("_index", "_variable", "_whole")

    def __init__(self, variable: HasParts, index: Index, tensor: EagerTensor) -> None:
        self._array, self._dtype = tensor._array, tensor._dtype
        self._device, self._home = tensor._device, tensor._home
        # For gradients it is the same tensor, which does not end before it.
        self._key, self._whole = key_of(tensor), tensor
        self._variable = variable
        self._index = index

    def assign(self, value: Any, name: str | None = None) -> Any:
        """Replace this part of the variable. Returns the variable.

        Raises:
            ValueError: A tensor of another type.
            InvalidArgumentError: Another shape.
        """
        return self._variable._assign_part(value, self._index, name)


__all__ = ["VariablePart"]
