"""Makes arrays of the constants of graphs: NumPy chooses the type, while eagerly the first element does."""

import math
from collections.abc import Iterable
from itertools import chain
from numbers import Complex, Integral, Real
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from allotment.tf.ops.values import TensorsInsideError, to_array
from allotment.tf.tensors.dtype import BY_NUMPY, DType, float32, string
from allotment.tf.tensors.tensor import Tensor

Array = npt.NDArray[Any]

_NESTS: Final = (list, tuple, range)
#: The Python types of elements that can become a type, by NumPy's kind of the type.
_SORTS: Final[dict[str, tuple[type, ...]]] = {
    "b": (bool,),
    "i": (Integral, np.integer),
    "u": (Integral, np.integer),
    "f": (Real, np.integer, np.floating),
    "c": (Complex, np.number),
    "O": (str, bytes),
}


def constant_array(value: Any, dtype: DType | None = None, shape: tuple[int, ...] | None = None) -> Array:
    """Make the array of a value that is no tensor.

    Python floats become float32, integers int32 (int64 or uint64 if one does not fit); elements of several sorts
    become what NumPy finds for all of them. For a shape without elements Python's values are not looked at.

    Raises:
        TensorsInsideError: A sequence of tensors.
        TypeError: An element of another sort than ``dtype``, or of one that has no tensor.
        ValueError: ``None``, a ragged sequence.
        OverflowError: A number too large for any type.
    """
    if value is None:
        raise ValueError("None values not supported.")
    if _is_array(value):
        array = np.asarray(value)
        if dtype is string:
            array = array.astype(object)
        elif dtype is not None:
            return to_array(array, dtype)
        return _settled(array, array.ravel().tolist() if array.dtype.kind in "OSU" else (), value)
    if shape is not None and 0 in shape:
        return np.empty(shape, (dtype or float32).numpy)
    leaves = _leaves(value)
    _check(leaves, dtype)
    with np.errstate(over="ignore"):
        array = _array(value, dtype)
        if array.shape != _lengths(value):
            raise ValueError(
                f"Expected values {value} to be a dense tensor with shape {list(_lengths(value))}, but got shape "
                f"{list(array.shape)}."
            )
        return _settled(array if dtype is not None else _preferred(array), leaves, value)


def _is_array(value: Any) -> bool:
    if isinstance(value, int | float | list | tuple | str | bytes):
        return isinstance(value, np.generic)
    if hasattr(value, "__array__"):
        return True
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _leaves(value: Any) -> list[Any]:
    """Return the elements of nested sequences as a list."""
    level = [value]
    while any(issubclass(each, _NESTS) for each in set(map(type, level))):
        level = list(chain.from_iterable(each if isinstance(each, _NESTS) else (each,) for each in level))
    return level


def _array(value: Any, dtype: DType | None) -> Array:
    """Make NumPy's array of nested sequences; integers out of range wrap around, unlike NumPy's."""
    if dtype is not None:
        try:
            return np.array(value, dtype.numpy)
        except OverflowError:
            pass
        return np.array(value).astype(dtype.numpy)
    return np.array(value)


def _check(leaves: list[Any], dtype: DType | None) -> None:
    kinds = set(map(type, leaves))
    if any(issubclass(kind, Tensor) or hasattr(kind, "_as_tensor") for kind in kinds):
        raise TensorsInsideError("Expected any non-tensor type, but got a tensor instead.")
    if dtype is None:
        return
    sort = _SORTS[dtype.numpy.kind]
    if all(issubclass(kind, sort) for kind in kinds):
        return
    for each in leaves:
        kind = each.dtype.type if isinstance(each, np.ndarray) else type(each)
        if not issubclass(kind, sort):
            raise TypeError(f"Expected {dtype.name}, but got {each} of type '{type(each).__name__}'.")


def _lengths(value: Any) -> tuple[int, ...]:
    """Return the shape of nested sequences, by the first element of each."""
    found: list[int] = []
    while isinstance(value, list | tuple):
        found.append(len(value))
        value = value[0] if value else None
    return tuple(found)


def _preferred(array: Array) -> Array:
    """Convert Python's numbers to the types that TensorFlow prefers to NumPy's: of 32 bits, if integers fit."""
    if array.dtype == np.float64:
        return array.astype(np.float32)
    if array.dtype == np.int64:
        short = array.astype(np.int32)
        return short if np.array_equal(short, array) else array
    return array


def _settled(array: Array, leaves: Iterable[Any], value: Any) -> Array:
    """Convert an array to an element type that tensors have."""
    if array.dtype.kind in "OSU":
        if not all(isinstance(each, str | bytes) for each in leaves):
            raise TypeError(f"Failed to convert elements of {value} to Tensor.")
        texts = np.empty(array.size, object)
        texts[:] = [each.encode() if isinstance(each, str) else bytes(each) for each in leaves]
        return texts.reshape(array.shape)
    found = BY_NUMPY.get(array.dtype.newbyteorder("="))
    if found is None:
        raise TypeError(f"Cannot convert the type of {value!r} to a TensorFlow DType.")
    return array.astype(found.numpy)


def shaped(array: Array, shape: tuple[int, ...], repeats_last: bool) -> Array:
    """Arrange values in a shape; a single value fills it, as does the last of too few.

    Raises:
        TypeError: The shape has another number of elements.
        ValueError: The last value is to fill it, and there are more values; a negative length.
    """
    count = math.prod(shape)
    if not repeats_last and array.shape not in ((), (1,)) and array.size != count:
        raise TypeError(f"Expected Tensor's shape: {shape}, but got {array.shape}.")
    if repeats_last and array.size > count:
        raise ValueError(f"Too many elements provided. Takes at most {count}, but got {array.size}.")
    if any(length < 0 for length in shape):
        raise ValueError(f"Dimension {min(shape)} must be >= 0")
    if array.size == count:
        return array.reshape(shape)
    flat = array.reshape(-1)[:count]
    if flat.size == 0:
        return np.full(shape, array.dtype.type(), array.dtype)
    return np.concatenate([flat, np.full(count - flat.size, flat[-1], array.dtype)]).reshape(shape)


__all__ = ["constant_array", "shaped"]
