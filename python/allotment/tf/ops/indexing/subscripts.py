"""Square brackets: ``tensor[...]``. The result has memory of its own."""

from types import EllipsisType
from typing import Any, Final

import numpy as np

from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.dispatch import current_placement
from allotment.tf.dispatch import thread
from allotment.tf.ops.arguments.integers import number_argument
from allotment.tf.ops.array.array import widened
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import dtype_of, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.masking import boolean_mask
from allotment.tf.ops.indexing.slicing import Index, strided_slice_row, take
from allotment.tf.ops.types.element_types import check_attribute
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.dtype import int16, int32, int64, string
from allotment.tf.tensors.tensor import EagerTensor, Tensor, tensor_of

_NAME: Final = "strided_slice/"
_INVALID: Final = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are valid "
    "indices"
)
#: Element types of scalars that can be an index.
_WHOLE: Final = frozenset({int16, int32, int64})


def getitem(tensor: Any, key: Any) -> EagerTensor:
    """Take a part of a tensor.

    Between the brackets stand whole numbers, slices, ``...``, ``None`` (``tf.newaxis``) and scalar tensors, or one
    mask of truth values.

    Raises:
        InvalidArgumentError: A number is outside of its axis, or there are more than the tensor has axes.
        TypeError: Something else between the brackets.
        ValueError: The mask is a scalar, or has another shape than the axes it covers.
    """
    value = tensor if type(tensor) is EagerTensor else to_tensor(tensor)
    kind = type(key)
    if kind is int or kind is slice:
        index: Index = (key,) if kind is int else (_plain_slice(key),)
    elif is_mask(key):
        return boolean_mask(value, key)
    else:
        index = index_of(key)
    placement = current_placement()
    home: Device = value._home
    dtype = value._dtype
    if home is placement.home and dtype is not string and (dtype is not int32 or home.kind == "CPU"):
        try:
            array = placement.compute(_take, value._array, index)
        except (IndexError, ValueError, MemoryError):
            pass  # The long way finds the words for it.
        else:
            return tensor_of(array, dtype, home, home)
    return run(strided_slice_row, (value,), index, name=_NAME)  # type: ignore[no-any-return]


def _take(array: Array, index: Index) -> Array:
    if array.ndim == 0:
        raise IndexError("see the words of the fault")
    return take(array, index)


def index_of(key: Any) -> Index:
    """Return a subscript in the form that NumPy takes.

    Raises:
        TypeError: Something that is no index.
    """
    # A list is read like a tuple, unlike NumPy's.
    if isinstance(key, tuple | list):
        _refuse_truths(key)
        if key and isinstance(key[0], bool):
            raise TypeError(f"{_INVALID}, got {key!r}")
    return tuple(_part(each) for each in (key if isinstance(key, tuple | list) else (key,)))


def _refuse_truths(key: Any) -> None:
    """A list is no mask: TensorFlow takes its elements for positions, and truth values are none."""
    if key and all(isinstance(each, bool | np.bool_) for each in key):
        check_attribute("StridedSlice", "Index", bool_, _NAME)


def _part(each: Any) -> "int | slice | EllipsisType | None":
    if each is None or each is ...:
        return each
    if isinstance(each, slice):
        return _plain_slice(each)
    return _number(each)


def _plain_slice(given: slice) -> slice:
    if _is_plain(given.start) and _is_plain(given.stop) and _is_plain(given.step):
        return given
    return slice(*(None if each is None else _number(each) for each in (given.start, given.stop, given.step)))


def _is_plain(bound: Any) -> bool:
    return bound is None or type(bound) is int


def _number(value: Any) -> int:
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iu":
        return int(value)
    if hasattr(value, "_as_tensor") and thread.state.graph is not None:
        value = value._as_tensor()
    if isinstance(value, Tensor) and value._dtype in _WHOLE and value.shape.rank in (0, None):
        # In a graph it may be known only when it runs.
        return int(value._array) if type(value) is EagerTensor else number_argument(widened(value), "index")
    if dtype_of(value) in _WHOLE and tuple(value.shape) == ():
        return int(value)
    raise TypeError(f"{_INVALID}, got {value!r}")


def is_mask(key: Any) -> bool:
    """Whether what stands between the brackets is a mask of truth values."""
    if isinstance(key, np.ndarray):
        return bool(key.dtype.kind == "b")
    return isinstance(key, bool) or dtype_of(key) is bool_


__all__ = ["getitem", "index_of", "is_mask"]
