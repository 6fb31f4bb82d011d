"""``tf.IndexedSlices``: some rows of a tensor, by their numbers. Gradients of lookups have this form."""

from collections import namedtuple
from typing import TYPE_CHECKING, Any

from allotment.tf.tensors.tensor_shape import TensorShape

if TYPE_CHECKING:
    from allotment.tf.tensors.tensor import EagerTensor

#: The arrays that a session returns for slices.
IndexedSlicesValue = namedtuple("IndexedSlicesValue", ["values", "indices", "dense_shape"])


class IndexedSlices:
    """Rows of a tensor and their numbers along its first axis; all other rows are zero. As ``tf.IndexedSlices``.

    A number may occur more than once: its rows are added up when the slices become a tensor, as in
    ``tf.convert_to_tensor``, and not before.

    Args:
        values: A tensor of shape ``(count, ...)``.
        indices: A tensor of integers of shape ``(count,)``.
        dense_shape: The shape of the whole tensor, as a tensor of integers with one axis.
    """

    if TYPE_CHECKING:
        # ``allotment.tf.ops.indexing.indexed_slices`` attaches it: operations are above tensors.
        def _as_tensor(self) -> "EagerTensor": ...

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Any:
        """The rows, of shape ``(count, ...)``."""
        return self._values

    @property
    def indices(self) -> Any:
        """The number of each row, of shape ``(count,)``."""
        return self._indices

    @property
    def dense_shape(self) -> Any:
        """The shape of the whole tensor, as a tensor; ``None`` if it was not given."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The static shape of the whole tensor; of unknown rank without ``dense_shape``."""
        if self._dense_shape is None:
            return TensorShape(None)
        known = getattr(self._dense_shape, "_static_value", lambda: self._dense_shape)()
        if known is None:
            return TensorShape([None] * self._dense_shape.shape[0])
        return TensorShape([int(length) for length in known])

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self._values.dtype

    @property
    def name(self) -> Any:
        """The name of ``values``, in a graph."""
        return self._values.name

    @property
    def device(self) -> Any:
        """The device of ``values``."""
        return self._values.device

    @property
    def op(self) -> Any:
        """The operation that makes ``values``, in a graph."""
        return self._values.op

    @property
    def graph(self) -> Any:
        """The graph of ``values``."""
        return self._values.graph

    def consumers(self) -> list[Any]:
        """Return the operations of a graph that take one of the tensors; eagerly there are none."""
        parts = [each for each in (self._values, self._indices, self._dense_shape) if hasattr(each, "_op")]
        return list({id(each): each for part in parts for each in part.consumers()}.values())

    def __neg__(self) -> "IndexedSlices":
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __str__(self) -> str:
        # Formatted, an eager tensor shows its value alone.
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape!s}"
        return f"IndexedSlices(indices={self._indices!s}, values={self._values!s}{shape})"


__all__ = ["IndexedSlices", "IndexedSlicesValue"]
