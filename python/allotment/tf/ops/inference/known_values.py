"""Values of tensors that constants and known shapes decide: whole values, and vectors of which some elements are known.

Sizes, axes and shapes among the inputs of operations come from such tensors:

    x                placeholder of shape (?, 5)
    tf.shape(x)      ? 5
    tf.shape(x)[1]   5
    [tf.shape(x)[0], tf.shape(x)[1] * 2]
                     ? 10
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from allotment.tf.ops.inference.symbolic import Known, Symbolic, SymbolicOperation
from allotment.tf.ops.table import StatefulArgument, same_shapes

Array = npt.NDArray[Any]
Dims = tuple[int | None, ...]


#: Operations that do more than compute, or compute something else each time.
_NOT_PURE: Final = (
    "Random",
    "Print",
    "Assert",
    "Multinomial",
    "Truncated",
    "Placeholder",
    "Var",
    "NoOp",
    "Timestamp",
)
#: Values up to this many elements are computed while a graph is built; larger ones are no sizes and axes.
_SMALL: Final = 4096
#: Operations whose results are elements of their first inputs, unchanged: of how many inputs, ``None`` for all.
_MOVED: Final[dict[str, int | None]] = {
    "BroadcastTo": 1,
    "ConcatV2": None,
    "EnsureShape": 1,
    "ExpandDims": 1,
    "Fill": 1,
    "GatherNd": 1,
    "GatherV2": 1,
    "Identity": 1,
    "Pack": None,
    "Repeat": 1,
    "Reshape": 1,
    "ReverseV2": 1,
    "Roll": 1,
    "Slice": 1,
    "Split": 1,
    "SplitV": 1,
    "Squeeze": 1,
    "StopGradient": 1,
    "StridedSlice": 1,
    "Tile": 1,
    "Transpose": 1,
    "Unpack": 1,
}
#: Operations that work on each element by itself, beside those that broadcast two inputs.
_BY_ELEMENT: Final = frozenset({"Abs", "Cast", "LogicalNot", "Neg", "SelectV2", "Sign", "Square"})


def constant_value(tensor: Symbolic) -> Array | None:
    """The value of a small tensor if constants and known shapes decide all of it, else ``None``."""
    known = known_value(tensor)
    return known.array if known is not None and known.mask is None else None


def known_numbers(tensor: Symbolic) -> tuple[Any, ...] | None:
    """The numbers of a vector, ``None`` for one that is not known; ``None`` if its length is not known.

    Of a matrix the rows, each as a tuple.
    """
    dims = tensor._shape._dims
    if not dims or None in dims or not _is_small(tensor):
        return None
    known = _or_unknown(tensor, known_value(tensor))
    return None if known is None else _numbers(known.array, known.mask)


def _numbers(array: Array, mask: Array | None) -> tuple[Any, ...]:
    if array.ndim > 1:
        return tuple(_numbers(row, None if mask is None else mask[place]) for place, row in enumerate(array))
    numbers = array.tolist()
    if mask is None:
        return tuple(numbers)
    return tuple(number if told else None for number, told in zip(numbers, mask.tolist(), strict=True))


def known_value(tensor: Symbolic) -> Known | None:
    """Return the elements of a small tensor that are known before a run, or ``None``.

    It is computed once: a whole value stays, a part of one until more is known of a shape in the graph.
    """
    waiting = [tensor]
    while waiting:
        each = waiting[-1]
        if _is_kept(each):
            waiting.pop()
            continue
        missing = [other for other in _needed(each) if not _is_kept(other)]
        if missing:
            waiting.extend(missing)
            continue
        found = _evaluated(each)
        final = found is not None and found.mask is None
        each._value = (None if final else each.graph._shapes_version, found)
        waiting.pop()
    assert tensor._value is not None
    return tensor._value[1]


def _is_kept(tensor: Symbolic) -> bool:
    kept = tensor._value
    return kept is not None and (kept[0] is None or kept[0] == tensor.graph._shapes_version)


def _is_pure(operation: SymbolicOperation) -> bool:
    return (
        operation._variable is None
        and not operation._row.name.startswith(_NOT_PURE)
        and not any(map(_is_stateful, operation._args))
    )


def _is_stateful(argument: Any) -> bool:
    # NumPy's generators have no class until they are first used: importing it would load them.
    return isinstance(argument, StatefulArgument) or hasattr(argument, "bit_generator")


def _needed(tensor: Symbolic) -> Sequence[Symbolic]:
    """Return the inputs that decide the value of a tensor."""
    operation = tensor._op
    if operation._row.name in _OF_SHAPES or not _is_small(tensor) or not _is_pure(operation):
        return ()
    return operation._inputs


def _is_small(tensor: Symbolic) -> bool:
    count = tensor._shape.num_elements()
    return count is not None and count <= _SMALL


def _evaluated(tensor: Symbolic) -> Known | None:
    operation = tensor._op
    name = operation._row.name
    if name == "Const":
        return Known(operation._args[0], None)
    if name in _OF_SHAPES:
        source = operation._inputs[tensor._index]
        return _OF_SHAPES[name](source._shape._dims, tensor._dtype.numpy)
    if not _is_small(tensor) or not _is_pure(operation):
        return None
    found: list[Known] = []
    for each in operation._inputs:
        known = _or_unknown(each, known_value(each))
        if known is None:
            return None
        found.append(known)
    array = _computed(operation, [each.array for each in found], tensor._index)
    if array is None or all(each.mask is None for each in found):
        return None if array is None else Known(array, None)
    mask = _mask(operation, found, tensor._index)
    if mask is None or mask.shape != array.shape or not mask.any():
        return None
    return Known(array, None if mask.all() else mask)


def _or_unknown(tensor: Symbolic, known: Known | None) -> Known | None:
    """Return what is known of an input; for a small one at least the number of its elements."""
    if known is not None or not _is_small(tensor) or tensor._dtype.numpy.kind not in "biuf":
        return known
    dims: Any = tensor._shape._dims
    return Known(np.ones(dims, tensor._dtype.numpy), np.zeros(dims, np.bool_))


def _of_shape(dims: Dims | None, dtype: Any) -> Known | None:
    if dims is None:
        return None
    array = np.array([1 if dim is None else dim for dim in dims], dtype)
    return Known(array, np.array([dim is not None for dim in dims]) if None in dims else None)


def _of_size(dims: Dims | None, dtype: Any) -> Known | None:
    if dims is None or None in dims:
        return None
    return Known(np.array(np.prod(dims, dtype=np.int64), dtype), None)  # type: ignore[arg-type]


def _of_rank(dims: Dims | None, dtype: Any) -> Known | None:
    return None if dims is None else Known(np.array(len(dims), dtype), None)


#: Operations whose results are known from the shape of an input.
_OF_SHAPES: Final[dict[str, Callable[[Dims | None, Any], Known | None]]] = {
    "Rank": _of_rank,
    "Shape": _of_shape,
    "ShapeN": _of_shape,
    "Size": _of_size,
}


def _mask(operation: SymbolicOperation, inputs: Sequence[Known], index: int) -> Array | None:
    """Which elements of a result are known, where some of the inputs are not."""
    name = operation._row.name
    if operation._row.fault is same_shapes or name in _BY_ELEMENT:
        masks = [np.True_ if each.mask is None else each.mask for each in inputs]
        return np.asarray(reduce(np.logical_and, np.broadcast_arrays(*masks)))
    if name not in _MOVED:
        return None
    count = len(inputs) if _MOVED[name] is None else _MOVED[name]
    if any(each.mask is not None for each in inputs[count:]):
        return None
    moved = [np.ones(each.array.shape, bool) if each.mask is None else each.mask for each in inputs[:count]]
    return _computed(operation, [*moved, *(each.array for each in inputs[count:])], index)


def _computed(operation: SymbolicOperation, arrays: list[Any], index: int) -> Array | None:
    try:
        with np.errstate(all="ignore"):
            result = operation._row.function(*arrays, *operation._args, **operation._kwargs)
    except (ValueError, TypeError, IndexError, ArithmeticError, np.linalg.LinAlgError):
        return None
    return np.asarray(result[index] if type(result) is tuple else result)


__all__ = ["constant_value", "known_numbers", "known_value"]
