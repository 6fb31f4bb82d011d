"""Python values and NumPy's into arrays: which element type they get, and what is refused in TensorFlow's words.

Longer than 300 lines: the ways for one kind of values share the walk through nested lists.
"""

import marshal
from itertools import chain
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from allotment.errors import WithFields
from allotment.tf.dispatch import thread
from allotment.tf.tensors.dtype import (
    BY_NUMPY,
    DType,
    complex128,
    float16,
    float32,
    float64,
    int32,
    int64,
    string,
    uint64,
)
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.tensor import Tensor

_MIXED: Final = "Can't convert Python sequence with mixed types to Tensor."
_RAGGED: Final = "Can't convert non-rectangular Python sequence to Tensor."
_LARGE_INTEGER: Final = "Can't convert Python sequence with out-of-range integer to Tensor."
_LARGE_FLOAT: Final = "Can't convert Python sequence with a value out of range for a double-precision float."

_INT32_MIN: Final = -(2**31)
_INT32_MAX: Final = 2**31 - 1
_FLOAT32_MAX: Final = float(np.finfo(np.float32).max)
#: Up to here Python compares faster than NumPy starts.
_SHORT: Final = 64

#: Kinds of elements, by their Python or NumPy type; sequences and values without a tensor have kinds, too.
_TRUTH, _NUMPY_TRUTH, _INTEGER, _NUMPY_INTEGER, _FLOAT, _DOUBLE, _HALF, _COMPLEX, _TEXT = range(9)
_SEQUENCE, _TENSOR, _OTHER = range(9, 12)
_KINDS: Final[dict[type, int]] = {
    bool: _TRUTH,
    int: _INTEGER,
    float: _FLOAT,
    complex: _COMPLEX,
    str: _TEXT,
    bytes: _TEXT,
    list: _SEQUENCE,
    tuple: _SEQUENCE,
    np.bool_: _NUMPY_TRUTH,
    np.float64: _DOUBLE,
    np.float16: _HALF,
}
_INTEGERS: Final = frozenset({_TRUTH, _INTEGER, _NUMPY_INTEGER})
_REALS: Final = _INTEGERS | {_FLOAT, _DOUBLE, _HALF}
_TRUTHS: Final = frozenset({_TRUTH, _NUMPY_TRUTH})
#: The kinds of element that are made into a type at once, where it is asked for. What is not here becomes the type
#: that it has by itself first, and is cast if that keeps its sort.
_AT_ONCE: Final[dict[DType, frozenset[int]]] = {
    float16: _REALS,
    float32: _REALS,
    float64: _REALS,
    int32: _INTEGERS,
    int64: _INTEGERS,
    uint64: _INTEGERS,
    complex128: _REALS | {_COMPLEX},
    bool_: _TRUTHS,
}
#: NumPy's sorts of type that a Python value may be cast from, by the sort of the type that is asked for.
_CASTS: Final = {"i": "iu", "u": "iu", "f": "fiu", "c": "cfiu"}
_REAL_TYPES: Final = (float32, float64, float16)
#: How version 2 of ``marshal``'s format has an element, by its type, and how long the head of a list is.
_MARSHALLED: Final[dict[type, tuple[int, str]]] = {float: (ord("g"), "<f8"), int: (ord("i"), "<i4")}
_HEADER: Final = 5
_UNSUPPORTED: Final = {
    "M": "NPY_DATETIME",
    "m": "NPY_TIMEDELTA",
    "g": "NPY_LONGDOUBLE",
    "G": "NPY_CLONGDOUBLE",
}

Array = npt.NDArray[Any]


class TensorsInsideError(WithFields, ValueError):
    """A sequence has tensors in it: packing them makes a tensor of it, a constant it is not."""


def to_array(value: Any, dtype: DType | None = None) -> Array:
    """The array of a value that is no tensor, of the type asked for, or the one that TensorFlow gives it.

    Python floats become float32, integers int32 (int64 if one does not fit), truth values bool, complex numbers
    complex128, texts UTF-8 bytes; NumPy values keep their type. NumPy values are cast to the type asked for,
    Python's have to be of its sort.

    Raises:
        TensorsInsideError: A sequence of tensors.
        ValueError: ``None``, a ragged or mixed sequence, a number too large, an object that has no tensor.
        TypeError: A Python value of another sort than ``dtype``.
    """
    python = type(value)
    if python is int:
        if (dtype is None or dtype is int32) and _INT32_MIN <= value <= _INT32_MAX:
            return np.array(value, np.int32)
    elif python is float:
        if dtype is None and -_FLOAT32_MAX <= value <= _FLOAT32_MAX:
            return np.array(value, np.float32)
    elif python is not list and python is not tuple:
        if isinstance(value, np.ndarray | np.generic):
            return _of_array(np.asarray(value), dtype)
        if hasattr(value, "__array__") and _kind_of(python) != _TENSOR:
            return _of_array(np.asarray(value), dtype)
    leaves, shape, kinds = _leaves(value)
    if len(leaves) == 0:
        return np.zeros(shape, float32.numpy if dtype is None else dtype.numpy)
    array = None if dtype is None else _at_once(leaves, kinds, dtype)
    if array is None:
        array = _by_itself(leaves, kinds, dtype)
        if dtype is not None and array.dtype != dtype.numpy:
            if array.dtype.kind not in _CASTS.get(dtype.numpy.kind, ""):
                # An operand's type is followed where it can be: `int_tensor * 1.5` is an error, as in TensorFlow.
                raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {dtype.error_name}")
            array = array.astype(dtype.numpy)
    return array if len(shape) == 1 else array.reshape(shape)


def _leaves(value: Any) -> tuple[list[Any] | Array, tuple[int, ...], frozenset[int]]:
    """The elements of nested sequences, one after the other; the shape; and the kinds of them."""
    level: list[Any] = [value]
    shape: list[int] = []
    while True:
        numbers = _of_one_type(level) if len(level) > _SHORT else None
        if numbers is not None:
            return numbers, tuple(shape), frozenset({_KINDS[type(level[0])]})
        kinds = frozenset([_kind_of(python) for python in set(map(type, level))])
        if _TENSOR in kinds:
            raise TensorsInsideError(_no_constant(level[0]))
        if _SEQUENCE not in kinds:
            return level, tuple(shape), kinds
        arrays = [each for each in level if type(each) is np.ndarray]
        if any(each.ndim == 0 for each in arrays):
            level = [each[()] if type(each) is np.ndarray and each.ndim == 0 else each for each in level]
            continue
        if len(arrays) == len(level):
            stacked = _stacked(arrays)
            if stacked is not None:
                kinds = frozenset({_kind_of(stacked.dtype.type)})
                return stacked.reshape(-1), (*shape, *stacked.shape[1:]), kinds
        if _kind_of(type(level[0])) != _SEQUENCE:
            raise ValueError(_MIXED)
        length = len(level[0])
        shape.append(length)
        if length == 0:
            # The first decides, as in TensorFlow: `[[], [1]]` has no elements.
            return [], tuple(shape), frozenset()
        if len(kinds) > 1 or any(len(each) != length for each in level):
            raise ValueError(_RAGGED)
        level = list(level[0]) if len(level) == 1 else list(chain.from_iterable(level))


def _of_one_type(level: list[Any]) -> Array | None:
    """Python floats or integers of 32 bits as an array, or ``None`` if there is anything else among them.

    ``marshal`` writes a letter for the type and the value of each, in one go: a look at the type of each element and
    NumPy's own conversion take twice as long.
    """
    letter, kind = _MARSHALLED.get(type(level[0]), (0, ""))
    if not letter:
        return None
    try:
        written = marshal.dumps(level, 2)
    except ValueError:
        return None
    record = np.dtype([("letter", np.uint8), ("value", kind)])
    if len(written) != _HEADER + len(level) * record.itemsize:
        return None
    # Anything else has another letter where the first one of them starts.
    records = np.frombuffer(written, record, offset=_HEADER)
    return records["value"] if np.equal(records["letter"], letter).all() else None


def _stacked(arrays: list[Array]) -> Array | None:
    """Arrays of one shape and type as one array, which takes no look at each element."""
    first = arrays[0]
    if first.size == 0 or first.dtype.kind not in "biufc":
        return None
    if any(each.shape != first.shape or each.dtype != first.dtype for each in arrays):
        return None
    return np.stack(arrays)


def _no_constant(first: Any) -> str:
    if _kind_of(type(first)) != _TENSOR:
        return _MIXED
    if isinstance(first, Tensor):
        return "TypeError: Scalar tensor has no `len()`"
    return "TypeError: object of type 'ResourceVariable' has no len()"


def _at_once(leaves: list[Any] | Array, kinds: frozenset[int], dtype: DType) -> Array | None:
    allowed = _AT_ONCE.get(dtype)
    if allowed is None or not kinds <= allowed:
        return None
    if dtype is uint64 and isinstance(leaves, np.ndarray) and leaves.min() < 0:
        # NumPy would let an array of integers wrap around.
        raise ValueError(_LARGE_INTEGER)
    try:
        return np.array(leaves, dtype.numpy)
    except OverflowError as error:
        error.__traceback__ = None
        if dtype is uint64:
            # TensorFlow fails here without saying why.
            raise ValueError(_LARGE_INTEGER) from None
        return None


def _by_itself(leaves: list[Any] | Array, kinds: frozenset[int], asked: DType | None) -> Array:
    """An array of the type that the first element calls for."""
    # Elements of one kind may come as an array of another one.
    first = next(iter(kinds)) if len(kinds) == 1 else _kind_of(type(leaves[0]))
    if first in _TRUTHS and kinds <= _TRUTHS:
        return np.array(leaves, bool)
    if first in _INTEGERS and first != _TRUTH and kinds <= _REALS:
        return _of_integers(leaves, kinds) if kinds <= _INTEGERS else _of_reals(leaves, float32, asked)
    if first in (_FLOAT, _DOUBLE, _HALF) and kinds <= _REALS:
        return _of_reals(leaves, _REAL_TYPES[first - _FLOAT], asked)
    if first == _COMPLEX and kinds <= _REALS | {_COMPLEX}:
        return np.array(leaves, np.complex128)
    if first == _TEXT and kinds <= {_TEXT}:
        return _texts(np.array(leaves, object))
    if first == _OTHER:
        raise ValueError(
            f"Attempt to convert a value ({leaves[0]!r}) with an unsupported type ({type(leaves[0])}) to a Tensor."
        )
    raise ValueError(_MIXED)


def _of_integers(leaves: list[Any] | Array, kinds: frozenset[int]) -> Array:
    # NumPy's own integers would wrap around in silence.
    if _NUMPY_INTEGER in kinds:
        leaves = leaves.tolist() if isinstance(leaves, np.ndarray) else [int(each) for each in leaves]
    for numpy in (np.int32, np.int64):
        try:
            return np.array(leaves, numpy)
        except OverflowError:
            pass
    raise ValueError(_LARGE_INTEGER)


def _of_reals(leaves: list[Any] | Array, dtype: DType, asked: DType | None) -> Array:
    """Make an array of real numbers, or raise an error for a number that its type does not hold."""
    if asked is not None and dtype is float32:
        # It is cast next, and may be too large for float32 only.
        dtype = float64
    try:
        array = np.array(leaves, dtype.numpy)
        short = dtype is float32 and len(leaves) <= _SHORT
        if short and max(leaves) <= _FLOAT32_MAX and min(leaves) >= -_FLOAT32_MAX:
            return array
        if dtype is not float64:
            large = np.isinf(array)
            if large.any() and np.isfinite(np.array(leaves, np.float64)[large]).any():
                raise OverflowError
    except OverflowError as error:
        error.__traceback__ = None
        raise ValueError(_LARGE_FLOAT) from None
    return array


def _of_array(array: Array, dtype: DType | None) -> Array:
    """An array in the tensor's memory: with its type, or cast as NumPy casts."""
    kind = array.dtype.kind
    if dtype is string or (dtype is None and kind in "SUTO"):
        return _texts(array.astype(object))
    if dtype is None:
        found = BY_NUMPY.get(array.dtype.newbyteorder("="))
        if found is None:
            what = _UNSUPPORTED.get(array.dtype.char)
            text = "Unexpected numpy data type" if what is None else f"Unsupported numpy type: {what}"
            raise ValueError(f"Failed to convert a NumPy array to a Tensor ({text}).")
        return array.astype(found.numpy)
    if kind == "c" and not dtype.is_complex and dtype is not bool_:
        # The same as a cast, without its warning.
        array = array.real
    try:
        return array.astype(dtype.numpy)
    except (TypeError, ValueError) as error:
        error.__traceback__ = None
        # Texts and objects are read as numbers, in NumPy's words where they are none: TensorFlow's as well.
        raise type(error)(str(error)) from None


def _texts(array: Array) -> Array:
    encoded = np.empty(array.shape, object)
    for index in np.ndindex(array.shape):
        text = array[index]
        if isinstance(text, str):
            text = text.encode()
        if not isinstance(text, bytes):
            _not_a_text(text)
        encoded[index] = bytes(text)
    return encoded


def _not_a_text(value: Any) -> NoReturn:
    if thread.state.graph is not None:
        raise TypeError(f"Expected binary or unicode string, got {value!r}")
    raise ValueError(
        f"Failed to convert a NumPy array to a Tensor (Unsupported object type {type(value).__name__})."
    )


def _kind_of(python: type) -> int:
    kind = _KINDS.get(python)
    return _look_at(python) if kind is None else kind


def _look_at(python: type) -> int:
    """The kind of a type that is none of the usual ones; not kept, as types may come and go."""
    if issubclass(python, Tensor) or hasattr(python, "_as_tensor"):
        return _TENSOR
    if issubclass(python, np.generic):
        for base, kind in (
            (np.integer, _NUMPY_INTEGER),
            (np.floating, _FLOAT),
            (np.complexfloating, _COMPLEX),
        ):
            if issubclass(python, base):
                # Spans of time are integers to NumPy.
                return _OTHER if issubclass(python, np.timedelta64) else kind
        return _TEXT if issubclass(python, np.character) else _OTHER
    for builtin in (int, float, complex, str, bytes):
        if issubclass(python, builtin):
            return _KINDS[builtin]
    if issubclass(python, dict) or not (hasattr(python, "__getitem__") and hasattr(python, "__len__")):
        return _OTHER
    return _SEQUENCE


__all__ = ["TensorsInsideError", "to_array"]
