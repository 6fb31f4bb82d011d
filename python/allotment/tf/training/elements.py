"""The elements of variables that an update reads and changes: all of them, or some rows."""

from typing import Any, Final

from allotment.tf.ops.indexing.gathering import gather
from allotment.tf.ops.variables.row_scatters import ROW_SCATTERS
from allotment.tf.training.slots import has_copies


class AllElements:
    """All elements of a variable."""

    def read(self, variable: Any) -> Any:
        """Return the elements of a variable or slot, for operations."""
        return variable

    def replace(self, variable: Any, value: Any) -> Any:
        """Replace the elements; return the operation of a graph that does so."""
        return variable.assign(value, read_value=False)

    def subtract(self, variable: Any, step: Any) -> Any:
        """Subtract a step from the elements; return the operation of a graph that does so."""
        return variable.assign_sub(step, read_value=False)


class Rows(AllElements):
    """Rows of a variable, by their numbers along the first axis."""

    def __init__(self, indices: Any) -> None:
        self._indices = indices

    def read(self, variable: Any) -> Any:
        """Return the rows of a variable or slot."""
        return gather(variable, self._indices)

    def replace(self, variable: Any, value: Any) -> Any:
        """Replace the rows, of which none may be named twice; return the operation of a graph that does so."""
        return self._scatter("scatter_update", variable, value)

    def subtract(self, variable: Any, step: Any) -> Any:
        """Subtract a step from the rows; return the operation of a graph that does so."""
        return self._scatter("scatter_sub", variable, step)

    def _scatter(self, name: str, variable: Any, value: Any) -> Any:
        own = variable._own() if has_copies(variable) else variable
        return own._scatter(ROW_SCATTERS[name], self._indices, value, None, read_value=False)


ALL_ELEMENTS: Final = AllElements()

__all__ = ["ALL_ELEMENTS", "AllElements", "Rows"]
