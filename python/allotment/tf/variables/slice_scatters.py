"""Methods of variables that change rows by ``IndexedSlices``: ``variable.scatter_add`` and the like."""

from typing import Any

from allotment.tf.ops.table import Operation
from allotment.tf.ops.variables.row_scatters import ROW_SCATTERS
from allotment.tf.tensors.indexed_slices import IndexedSlices


class SliceScatters:
    """The methods by which slices change the rows of a variable that they name.

    Each takes the slices and the name of the operation. Rows of one number are applied one after the other. They
    return the variable; in a graph its value after the change.

    Raises:
        TypeError: The argument is no ``IndexedSlices``.
        InvalidArgumentError: A number is out of range, or the rows have another shape.
    """

    def _scatter(
        self, row: Operation, indices: Any, updates: Any, name: str | None, read_value: bool = True
    ) -> Any:
        raise NotImplementedError

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:  # noqa: ARG002
        """Add slices to the rows that they name."""
        return self._scatter_slices("scatter_add", sparse_delta, name)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:  # noqa: ARG002
        """Subtract slices from the rows that they name."""
        return self._scatter_slices("scatter_sub", sparse_delta, name)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:  # noqa: ARG002
        """Replace elements by those of slices where they are larger."""
        return self._scatter_slices("scatter_max", sparse_delta, name)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:  # noqa: ARG002
        """Replace elements by those of slices where they are smaller."""
        return self._scatter_slices("scatter_min", sparse_delta, name)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:  # noqa: ARG002
        """Multiply the rows that slices name by them."""
        return self._scatter_slices("scatter_mul", sparse_delta, name)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:  # noqa: ARG002
        """Divide the rows that slices name by them."""
        return self._scatter_slices("scatter_div", sparse_delta, name)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:  # noqa: ARG002
        """Replace the rows that slices name."""
        return self._scatter_slices("scatter_update", sparse_delta, name)

    def _scatter_slices(self, method: str, sparse_delta: Any, name: str | None) -> Any:
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(
                f"Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: {sparse_delta}"
            )
        return self._scatter(ROW_SCATTERS[method], sparse_delta.indices, sparse_delta.values, name)


__all__ = ["SliceScatters"]
