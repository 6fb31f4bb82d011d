"""Slices of variables: the result of ``variable[...]``."""

from typing import Any, Protocol

from allotment.tf.ops.indexing.slicing import Index
from allotment.tf.tensors.tensor import EagerTensor, key_of


class HasParts(Protocol):
    """Protocol of a variable with slices that can be assigned."""

    def _assign_part(self, value: Any, index: Index, name: str | None) -> Any: ...


class VariablePart(EagerTensor):
    """The value of a slice of a variable: a tensor whose ``assign`` changes the variable."""

    __slots__ = ("_index", "_variable", "_whole")

    def __init__(self, variable: HasParts, index: Index, tensor: EagerTensor) -> None:
        self._array, self._dtype = tensor._array, tensor._dtype
        self._device, self._home = tensor._device, tensor._home
        # Gradients treat this object as the same tensor, so it must keep that tensor alive.
        self._key, self._whole = key_of(tensor), tensor
        self._variable = variable
        self._index = index

    def assign(self, value: Any, name: str | None = None) -> Any:
        """Replace this slice of the variable, and return the variable.

        Raises:
            ValueError: ``value`` is a tensor of another type.
            InvalidArgumentError: ``value`` has another shape than the slice.
        """
        return self._variable._assign_part(value, self._index, name)


__all__ = ["VariablePart"]
