"""``scatter_update`` and similar functions of TensorFlow 1, which change elements of a variable."""

from collections.abc import Callable
from typing import Any, Final

from allotment.tf.ops.public import public
from allotment.tf.ops.table import Operation
from allotment.tf.ops.variables.resources import SCATTER_ADD, SCATTER_SUBTRACT, SCATTER_UPDATE
from allotment.tf.ops.variables.row_scatters import ROW_SCATTERS


def _function(name: str, row: Operation, where: str) -> Callable[..., Any]:
    def call(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None) -> Any:
        del use_locking
        return ref._scatter(row, indices, updates, name)

    # Eagerly and in one graph no update waits for another: the default is only shown.
    call.__defaults__ = (name.endswith("update"), None)
    doc = f"""Change a variable {where}. As ``tf.compat.v1.{name}``.

    In a graph: return the value after that. Eagerly: the variable.

    Raises:
        InvalidArgumentError: An index is out of range, or the updates have another shape.
    """
    return public(call, name, doc)


_BY_NUMBER: Final = "at indices along its first axis; updates are as many slices, or one number"
_ANYWHERE: Final = "at indices; updates are as many elements or slices"

#: The functions by name.
SCATTERS: Final[dict[str, Callable[..., Any]]] = {
    **{name: _function(name, row, _BY_NUMBER) for name, row in ROW_SCATTERS.items()},
    "scatter_nd_add": _function("scatter_nd_add", SCATTER_ADD, _ANYWHERE),
    "scatter_nd_sub": _function("scatter_nd_sub", SCATTER_SUBTRACT, _ANYWHERE),
    "scatter_nd_update": _function("scatter_nd_update", SCATTER_UPDATE, _ANYWHERE),
}

__all__ = ["SCATTERS"]
