"""Changes of variables at places along their first axis, by number: TensorFlow 1's ``scatter_add`` and the like."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from allotment.tf.ops.arrays import Array, is_host
from allotment.tf.ops.indexing.scattering import assign_at, maximum_at, minimum_at
from allotment.tf.ops.inference.common import stated
from allotment.tf.ops.reduction.rows import at
from allotment.tf.ops.table import Operation, dims, operation
from allotment.tf.ops.variables.resources import Storage, writable


def row_fault(value: Array, indices: Array, storage: Storage) -> str | None:
    """What is wrong with rows to change a variable by, or ``None``."""
    shape = storage.array.shape
    if not shape:
        return "params must be at least 1-D, got shape []"
    if value.ndim and value.shape != indices.shape + shape[1:]:
        return (
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape "
            f"{dims(value)}, indices.shape {dims(indices)}, params.shape {dims(storage.array)}"
        )
    outside = np.argwhere((indices < 0) | (indices >= shape[0]))
    if not outside.size:
        return None
    place = tuple(outside[0].tolist())
    named = f"indices[{','.join(map(str, place))}]" if place else "indices"
    return f"{named} = {int(indices[place])} is not in [0, {shape[0]})"


def _row(op: str, change: Callable[..., Any]) -> Operation:
    def changed(value: Array, indices: Array, storage: Storage) -> Array:
        array = writable(storage)
        change(array, indices, value)
        return array

    return operation(f"Resource{op}", changed, shape=stated, fault=row_fault)


def _divide_at(array: Array, indices: Array, value: Array) -> None:
    # One by one where a place comes twice; quotients of integers are cut, as TensorFlow's are.
    values = np.broadcast_to(value, indices.shape + array.shape[1:]).reshape(-1, *array.shape[1:])
    for place, each in zip(indices.reshape(-1), values, strict=True):
        quotient = array[place] / each
        array[place] = quotient if array.dtype.kind in "fc" else np.trunc(quotient)


_multiply_vectors_at = at(np.multiply)


def _multiply_at(array: Array, indices: Array, value: Array) -> None:
    if is_host(array):
        _multiply_vectors_at(array, indices, value)
        return
    # CuPy has no multiply.at: one by one, as quotients.
    values = np.broadcast_to(value, indices.shape + array.shape[1:]).reshape(-1, *array.shape[1:])
    for place, each in zip(indices.reshape(-1), values, strict=True):
        array[place] = array[place] * each


#: The rows by the names of their functions.
ROW_SCATTERS: Final[dict[str, Operation]] = {
    "scatter_add": _row("ScatterAdd", at(np.add)),
    "scatter_div": _row("ScatterDiv", _divide_at),
    "scatter_max": _row("ScatterMax", maximum_at),
    "scatter_min": _row("ScatterMin", minimum_at),
    "scatter_mul": _row("ScatterMul", _multiply_at),
    "scatter_sub": _row("ScatterSub", at(np.subtract)),
    "scatter_update": _row("ScatterUpdate", assign_at),
}

__all__ = ["ROW_SCATTERS", "row_fault"]
