"""Parts of variables: what ``variable[...]`` returns."""

from typing import TYPE_CHECKING, Any

from allotment.tf.ops.slicing import Index
from allotment.tf.tensor import EagerTensor, key_of

if TYPE_CHECKING:
    from allotment.tf.variable import Variable


class VariablePart(EagerTensor):
    """A part of a variable that was read: a tensor, with a way back into the variable."""

    __slots__ = ("_index", "_variable", "_whole")

    def __init__(self, variable: "Variable", index: Index, tensor: EagerTensor) -> None:
        self._array, self._dtype = tensor._array, tensor._dtype
        self._device, self._home = tensor._device, tensor._home
        # For gradients it is the same tensor, which does not end before it.
        self._key, self._whole = key_of(tensor), tensor
        self._variable = variable
        self._index = index

    def assign(self, value: Any, name: str | None = None) -> "Variable":
        """Replace this part of the variable. Returns the variable.

        Raises:
            ValueError: A tensor of another type.
            InvalidArgumentError: Another shape.
        """
        return self._variable._assign_part(value, self._index, name)


__all__ = ["VariablePart"]
