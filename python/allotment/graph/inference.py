"""Types and shapes of a new node's outputs, from what is known of its inputs.

No operation has a second body for shapes: its own function is tried on small arrays of zeros. Lengths that are
unknown or large are replaced by small ones, twice with different stand-ins:

    input          first try      second try      result            so the result is
    (?, 500)       (13, 17)       (14, 19)        (13, 1) (14, 1)   (?, 1)

A length of the result that is a stand-in in both tries is the length it stands for; one that is the same in both
is itself; any other is unknown. Where the function refuses small arrays and the real ones are small enough, it is
tried on those.
"""

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from allotment.dtypes import BY_NUMPY, DType
from allotment.graph.abstract import is_plain
from allotment.ops.execute import same_shapes
from allotment.ops.table import Operation
from allotment.tensor_shape import TensorShape

#: Type and shape of one output.
Output = tuple[DType, TensorShape]
Dims = tuple[int | None, ...]

#: Lengths from here on have stand-ins.
_LARGE: Final = 24
#: Stand-ins of the first and the second try, as many as there may be different lengths.
_STAND_INS: Final = ((29, 31, 37, 41, 43, 47), (53, 59, 61, 67, 71, 73))
#: Another pair, for functions that only take lengths that can be divided.
_ROUND_STAND_INS: Final = ((48, 96, 144, 192, 240, 288), (60, 120, 180, 300, 360, 420))
#: Real arrays up to this many elements are tried.
_SMALL: Final = 1 << 20
_UNKNOWN: Final = TensorShape(None)


def infer(
    row: Operation, inputs: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Output] | None:
    """The outputs of a row, or ``None`` if its function refuses every array that was tried."""
    shapes = [tensor._shape._dims for tensor in inputs]
    if row.fault is same_shapes and not args and not kwargs:
        made = _elementwise(row, inputs, shapes)
        if made is not None:
            return made
    types = [tensor._dtype for tensor in inputs]
    if None in shapes:
        return None
    for pairs in (_STAND_INS, _ROUND_STAND_INS):
        made = _with_stand_ins(row, types, shapes, args, kwargs, pairs)
        if made is not None:
            return made
    sizes = [dim for shape in shapes for dim in shape or ()]
    if None in sizes or sum(tensor._shape.num_elements() or 0 for tensor in inputs) > _SMALL:
        return None
    tried = _try(row, types, shapes, args, kwargs)
    return None if tried is None else [(row.result or dtype, TensorShape(shape)) for dtype, shape in tried]


def _elementwise(row: Operation, inputs: Sequence[Any], shapes: list[Dims | None]) -> list[Output] | None:
    """The output of an operation that broadcasts its inputs: one element tells the type."""
    if row.result is not None:
        dtype = row.result
    else:
        tried = _try(row, [tensor._dtype for tensor in inputs], [()] * len(inputs), (), {})
        if tried is None or len(tried) != 1:
            return None
        dtype = tried[0][0]
    shape = shapes[0]
    for other in shapes[1:]:
        if shape is None or other is None:
            return [(dtype, _UNKNOWN)]
        joined = broadcast(shape, other)
        if joined is None:
            return None
        shape = joined
    return [(dtype, TensorShape(shape))]


def broadcast(left: Dims, right: Dims) -> Dims | None:
    """The shape of two shapes broadcast to each other, or ``None`` if they do not go together."""
    if left == right:
        return left
    dims: list[int | None] = []
    for a, b in itertools.zip_longest(reversed(left), reversed(right), fillvalue=1):
        if a == 1 or (a is None and b not in (None, 1)):
            dims.append(b)
        elif b == 1 or b == a or b is None:
            dims.append(a)
        else:
            return None
    return tuple(reversed(dims))


def _with_stand_ins(
    row: Operation,
    types: list[DType],
    shapes: list[Dims],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    pairs: tuple[Sequence[int], Sequence[int]],
) -> list[Output] | None:
    large = _large_lengths(shapes, args)
    if len(large) > len(pairs[0]):
        return None
    tries = []
    for numbers in pairs if large else pairs[:1]:
        stand_ins = dict(zip(large, numbers, strict=False))
        small = [tuple(stand_ins.get(dim, dim) for dim in shape) for shape in shapes]
        replaced = tuple(_replaced(each, stand_ins) for each in args)
        tried = _try(
            row, types, small, replaced, {name: _replaced(each, stand_ins) for name, each in kwargs.items()}
        )
        if tried is None:
            return None
        tries.append((tried, {number: length for length, number in stand_ins.items()}))
    first, lengths = tries[0]
    if not large:
        return [(row.result or dtype, TensorShape(shape)) for dtype, shape in first]
    second, other_lengths = tries[1]
    if len(first) != len(second):
        return None
    return [
        (row.result or dtype, _joined(shape, other, lengths, other_lengths))
        for (dtype, shape), (_, other) in zip(first, second, strict=True)
    ]


def _joined(
    first: tuple[int, ...], second: tuple[int, ...], lengths: dict[int, Any], other_lengths: dict[int, Any]
) -> TensorShape:
    if len(first) != len(second):
        return _UNKNOWN
    dims: list[int | None] = []
    for one, other in zip(first, second, strict=True):
        if one in lengths and other in other_lengths and lengths[one] == other_lengths[other]:
            dims.append(lengths[one])
        else:
            dims.append(one if one == other else None)
    return TensorShape(dims)


def _large_lengths(shapes: list[Dims], args: tuple[Any, ...]) -> list[int | None]:
    found: dict[int | None, None] = {}
    for shape in shapes:
        for dim in shape:
            if dim is None or dim >= _LARGE:
                found[dim] = None
    for argument in args:
        if type(argument) is tuple:
            for each in argument:
                if type(each) is int and each >= _LARGE:
                    found[each] = None
    return list(found)


def _replaced(argument: Any, stand_ins: dict[Any, int]) -> Any:
    if not is_plain(argument):
        # A source of random numbers would be drawn from.
        return np.random.default_rng(0)
    if type(argument) is tuple and any(type(each) is int and each in stand_ins for each in argument):
        return tuple(stand_ins.get(each, each) if type(each) is int else each for each in argument)
    return argument


def _try(
    row: Operation, types: list[DType], shapes: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[DType, tuple[int, ...]]] | None:
    result = None
    # Zeros are places in every array, but not divisors: then ones are tried.
    for value in (0, 1):
        arrays = [_filled(dtype, shape, value) for dtype, shape in zip(types, shapes, strict=True)]
        try:
            with np.errstate(all="ignore"):
                result = row.function(*arrays, *args, **kwargs)
            break
        except Exception:
            continue
    if result is None:
        return None
    results = result if type(result) is tuple else (result,)
    found = []
    for each in results:
        array = np.asarray(each)
        if array.dtype not in BY_NUMPY:
            return None
        found.append((BY_NUMPY[array.dtype], array.shape))
    return found


def _filled(dtype: DType, shape: tuple[int, ...], value: int) -> np.ndarray[Any, Any]:
    if dtype.numpy == np.dtype(object):
        return np.full(shape, b"", object)
    return np.full(shape, value, dtype.numpy)


__all__ = ["Output", "broadcast", "infer"]
