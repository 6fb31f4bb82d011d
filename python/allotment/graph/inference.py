"""Types and shapes of a new node's outputs, from what is known of its inputs.

No operation has a second body for shapes: its own function is tried on arrays of zeros, of ones and of numbers that
differ, for what depends on the elements. Lengths that are unknown, or make arrays too large to try, are replaced by
small ones, twice with different stand-ins:

    input          first try      second try      result            so the result is
    (?, 5)         (29, 5)        (3, 5)          (29, 1) (3, 1)    (?, 1)

A length of the result that is a stand-in in both tries is the length it stands for; one that is the same in both
is itself; any other is unknown. Known lengths are replaced only where no number among the arguments could tell.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from allotment.dtypes import BY_NUMPY, DType
from allotment.graph.abstract import constant_value, is_plain
from allotment.ops.execute import same_shapes
from allotment.ops.table import Operation
from allotment.tensor_shape import TensorShape

#: Type and shape of one output.
Output = tuple[DType, TensorShape]
Dims = tuple[int | None, ...]

#: Arrays up to this many elements are tried as they are, but for unknown lengths.
_CHEAP: Final = 1 << 14
#: And up to this many if nothing else tells.
_SMALL: Final = 1 << 20
#: Lengths from here on have stand-ins where arrays are too large.
_LARGE: Final = 24
_STAND_INS: Final = ((29, 31, 37, 41, 43, 47), (53, 59, 61, 67, 71, 73))
#: Pairs of stand-ins, the first pair that a function takes. An unknown length, which is the first of them, may be
#: smaller than those that are known; and some functions only take lengths that can be divided.
_PAIRS: Final = (
    (_STAND_INS[0], (3, *_STAND_INS[1][1:])),
    _STAND_INS,
    ((48,), (60,)),
)
#: They look at no element, so that arrays of any size can be tried.
_VIEWS: Final = frozenset({"ExpandDims", "Reshape", "Slice", "Squeeze", "StridedSlice"})
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
        return _types_alone(row, types, shapes, args, kwargs)
    known = [_small_value(tensor) for tensor in inputs]
    trial = _Trial(row, types, shapes, known, args, kwargs)
    unknown = any(None in shape for shape in trial.shapes)
    if unknown and row.name == "Squeeze" and args == ((),):
        # Which axes go depends on the lengths.
        return [(types[0], _UNKNOWN)]
    if trial.cost() <= _CHEAP:
        made = trial.with_stand_ins([None], _PAIRS) if unknown else trial.as_it_is()
        if made is not None or not unknown:
            return made
    elif not _has_numbers(args):
        made = trial.with_stand_ins(_large_lengths(trial.shapes, args), _PAIRS[:2])
        if made is not None:
            return made
    if unknown:
        return _types_alone(row, types, shapes, args, kwargs)
    return trial.as_it_is() if trial.cost() <= _SMALL or row.name in _VIEWS else None


def _has_numbers(args: tuple[Any, ...]) -> bool:
    """Whether arguments have numbers that may be lengths, and are not replaced with the lengths."""
    for argument in args:
        for each in argument if type(argument) is tuple else (argument,):
            ends = (each.start, each.stop, each.step) if isinstance(each, slice) else (each,)
            replaced = type(argument) is tuple and type(each) is int and each >= _LARGE
            if any(isinstance(end, int) and abs(end) >= _LARGE for end in ends) and not replaced:
                return True
    return False


def _types_alone(
    row: Operation,
    types: list[DType],
    shapes: Sequence[Dims | None],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> list[Output] | None:
    """The types of outputs whose shapes cannot be told: of arrays of some small shapes that the function takes."""
    if row.name in _AS_MANY_AS_LONG:
        return None
    plain = tuple(_replaced(each, {}) for each in args)
    # A length that is not known may have to be one of the others.
    known = {dim for shape in shapes for dim in shape or () if dim is not None and dim < _LARGE}
    for length, rank in itertools.product((3, 2, 4, *sorted(known - {2, 3, 4})), (2, 1, 3, 4, 0)):
        guessed = [
            (length,) * rank if shape is None else tuple(length if dim is None else dim for dim in shape)
            for shape in shapes
        ]
        tried = _try(row, types, guessed, [None] * len(types), plain, kwargs)
        if tried is not None:
            return [(row.result or dtype, _UNKNOWN) for dtype, _ in tried]
    return None


#: They make as many tensors as an axis is long.
_AS_MANY_AS_LONG: Final = frozenset({"Unpack"})


def _elementwise(row: Operation, inputs: Sequence[Any], shapes: list[Dims | None]) -> list[Output] | None:
    """The output of an operation that broadcasts its inputs: one element tells the type."""
    if row.result is not None:
        dtype = row.result
    else:
        tried = _try(
            row, [tensor._dtype for tensor in inputs], [()] * len(inputs), [None] * len(inputs), (), {}
        )
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


@dataclass(frozen=True, slots=True)
class _Trial:
    """What is tried."""

    row: Operation
    types: list[DType]
    shapes: list[Dims]
    known: list[Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def cost(self) -> int:
        """Elements of the inputs, and of what shapes among the arguments ask for."""
        asked = [
            math.prod(abs(each) for each in argument if type(each) is int and each)
            for argument in self.args
            if type(argument) is tuple
        ]
        inputs = [
            math.prod(_STAND_INS[0][0] if dim is None else dim for dim in shape) for shape in self.shapes
        ]
        return sum(inputs) * max([1, *asked]) if self.row.name == "Tile" else sum(inputs) + sum(asked)

    def as_it_is(self) -> list[Output] | None:
        """The outputs of arrays as large as the real ones."""
        args = tuple(_replaced(each, {}) for each in self.args)
        tried = _try(self.row, self.types, self.shapes, self.known, args, self.kwargs)
        return (
            None
            if tried is None
            else [(self.row.result or dtype, TensorShape(dims)) for dtype, dims in tried]
        )

    def with_stand_ins(self, lengths: Sequence[Any], pairs: Sequence[Any]) -> list[Output] | None:
        """The outputs of arrays whose lengths have stand-ins; of several pairs the first that the function takes."""
        for first, second in pairs:
            if len(lengths) <= len(first):
                made = self._with_pair(
                    dict(zip(lengths, first, strict=False)), dict(zip(lengths, second, strict=False))
                )
                if made is not None:
                    return made
        return None

    def _with_pair(self, *pair: dict[Any, int]) -> list[Output] | None:
        tries = []
        for stand_ins in pair:
            shapes = [tuple(stand_ins.get(dim, dim) for dim in shape) for shape in self.shapes]
            args = tuple(_replaced(each, stand_ins) for each in self.args)
            kwargs = {name: _replaced(each, stand_ins) for name, each in self.kwargs.items()}
            tried = _try(self.row, self.types, shapes, self.known, args, kwargs)
            if tried is None:
                return None
            tries.append((tried, {number: length for length, number in stand_ins.items()}))
        (first, lengths), (second, other_lengths) = tries
        if len(first) != len(second):
            return None
        return [
            (self.row.result or dtype, _joined(dims, other, lengths, other_lengths))
            for (dtype, dims), (_, other) in zip(first, second, strict=True)
        ]


def _joined(first: Dims, second: Dims, lengths: dict[int, Any], other_lengths: dict[int, Any]) -> TensorShape:
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
    """The lengths that have stand-ins, an unknown one first."""
    numbers = [each for argument in args if type(argument) is tuple for each in argument if type(each) is int]
    dims = [dim for shape in shapes for dim in shape]
    large = dict.fromkeys(dim for dim in (*dims, *numbers) if dim is not None and dim >= _LARGE)
    return [None, *large]


def _replaced(argument: Any, stand_ins: dict[Any, int]) -> Any:
    if not is_plain(argument):
        # A source of random numbers would be drawn from.
        return np.random.default_rng(0)
    if type(argument) is tuple and any(type(each) is int and each in stand_ins for each in argument):
        return tuple(stand_ins.get(each, each) if type(each) is int else each for each in argument)
    return argument


#: What one try tells of each output: its type, and its shape with ``None`` where that depends on the elements.
Tried = list[tuple[DType, Dims]]


def _try(
    row: Operation,
    types: list[DType],
    shapes: Sequence[Any],
    known: Sequence[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Tried | None:
    """What a function makes of arrays of several fillings, as far as they agree."""
    found: Tried | None = None
    # Zeros are places in every array, but not divisors; of equal elements there is one; few matrices have an inverse.
    for fill in (np.zeros, np.ones, _counted, _identity):
        if fill is _identity and found is not None:
            break
        arrays = [
            _array(fill, dtype, shape, number) if value is None or value.shape != shape else value
            for number, (dtype, shape, value) in enumerate(zip(types, shapes, known, strict=True))
        ]
        try:
            with np.errstate(all="ignore"):
                result = row.function(*arrays, *args, **kwargs)
        except Exception:
            continue
        made = _described(result)
        found = made if found is None or made is None else _agreed(found, made)
        if found is None:
            return None
    return found


def _described(result: Any) -> Tried | None:
    made: Tried = []
    for each in result if type(result) is tuple else (result,):
        array = np.asarray(each)
        if array.dtype not in BY_NUMPY:
            return None
        made.append((BY_NUMPY[array.dtype], array.shape))
    return made


def _agreed(one: Tried, other: Tried) -> Tried | None:
    if len(one) != len(other) or any(len(a) != len(b) for (_, a), (_, b) in zip(one, other, strict=True)):
        return None
    return [
        (dtype, tuple(a if a == b else None for a, b in zip(left, right, strict=True)))
        for (dtype, left), (_, right) in zip(one, other, strict=True)
    ]


def _small_value(tensor: Any) -> np.ndarray[Any, Any] | None:
    """The elements of an input that says what to make, where they are known."""
    dims = tensor._shape._dims
    # What says how much to make is a number or a list of numbers.
    listed = len(dims) == 0 or (len(dims) == 1 and dims[0] is not None and dims[0] < _LARGE)
    return constant_value(tensor) if listed else None


def _array(fill: Any, dtype: DType, shape: tuple[int, ...], number: int) -> np.ndarray[Any, Any]:
    """The array of an input, which has a number."""
    if dtype.numpy == np.dtype(object):
        return np.full(shape, b"", object)
    if math.prod(shape) > _SMALL:
        return np.broadcast_to(fill((), dtype.numpy), shape)
    made: np.ndarray[Any, Any] = fill(shape, dtype.numpy)
    # Inputs that differ, such as the ends of a range.
    return made if fill is not _counted else ((made + number) % 3).astype(dtype.numpy)


def _counted(shape: tuple[int, ...], numpy: Any) -> np.ndarray[Any, Any]:  # noqa: ARG001 - as NumPy's makers
    """Elements that differ, and none of them large: they may say how much to make."""
    return (np.arange(math.prod(shape)) % 3).reshape(shape)


def _identity(shape: tuple[int, ...], numpy: Any) -> np.ndarray[Any, Any]:
    """Matrices that have an inverse."""
    if len(shape) < 2:
        return np.ones(shape, numpy)
    return np.broadcast_to(np.eye(*shape[-2:], dtype=numpy), shape).copy()


__all__ = ["Output", "broadcast", "infer"]
