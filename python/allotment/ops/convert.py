"""Python values, arrays and tensors into tensors."""

from typing import Any

import numpy as np
import numpy.typing as npt

from allotment.dtypes import DType, as_dtype, complex128, float32, int32, int64, of_numpy, string
from allotment.dtypes import bool as bool_
from allotment.tensor import EagerTensor, Tensor

_INT32 = np.iinfo(np.int32)


def to_tensor(value: Any, dtype: DType | None = None, like: DType | None = None) -> EagerTensor:
    """Convert a value to a tensor on the device of the current scope; a tensor is returned as it is.

    ``dtype`` is the type that it must have, ``like`` the one that Python numbers become if they can.

    Raises:
        ValueError: A tensor of another type than ``dtype``; a value that no tensor can hold.
        TypeError: A value that ``dtype`` cannot hold.
    """
    if isinstance(value, EagerTensor):
        if dtype is not None and value._dtype is not dtype:
            raise ValueError(
                f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype {value._dtype.name}: {value!r}"
            )
        return value
    convert = getattr(value, "_as_tensor", None)
    if convert is not None:
        converted: EagerTensor = convert()
        return to_tensor(converted, dtype)
    from allotment.ops.creation import eager_const

    return eager_const(value, dtype, like)


def to_pair(x: Any, y: Any) -> tuple[EagerTensor, EagerTensor]:
    """Convert two operands: a Python number takes the type of the tensor beside it."""
    if isinstance(x, Tensor) or hasattr(x, "_as_tensor"):
        x = to_tensor(x)
        return x, to_tensor(y, like=x._dtype)
    if isinstance(y, Tensor) or hasattr(y, "_as_tensor"):
        y = to_tensor(y)
        return to_tensor(x, like=y._dtype), y
    x = to_tensor(x)
    return x, to_tensor(y, like=x._dtype)


def to_array(value: Any, dtype: DType | None, like: DType | None) -> npt.NDArray[Any]:
    """The array of a value, with the element type that TensorFlow gives it.

    Python floats become float32, integers int32 (int64 if one does not fit), truth values bool, complex numbers
    complex128, texts UTF-8 bytes; NumPy values keep their type.

    Raises:
        ValueError: ``None``, a ragged sequence, or an object of a kind that has no tensor.
        TypeError: The value does not fit ``dtype``.
    """
    if isinstance(value, np.ndarray | np.generic):
        return _retyped(np.asarray(value), dtype or like, value, forced=dtype is not None)
    leaf = _first_leaf(value)
    if leaf is None and not _is_empty(value):
        raise ValueError(
            f"Attempt to convert a value ({value}) with an unsupported type ({type(value)}) to a Tensor."
        )
    if isinstance(leaf, str | bytes) or dtype is string:
        return _texts(value, dtype)
    try:
        array = np.asarray(value)
    except OverflowError as error:
        raise ValueError(
            f"Can't convert Python sequence with out-of-range integer to Tensor: {error}"
        ) from None
    except ValueError:
        raise ValueError("Can't convert non-rectangular Python sequence to Tensor.") from None
    if array.dtype == object:
        raise ValueError(
            f"Attempt to convert a value ({value!r}) with an unsupported type ({type(leaf)}) to a Tensor."
        )
    if isinstance(leaf, np.ndarray | np.generic | Tensor) or hasattr(leaf, "_as_tensor"):
        return _retyped(array, dtype or like, value, forced=dtype is not None)
    return _of_python(array, dtype, like, value)


def _of_python(
    array: npt.NDArray[Any], dtype: DType | None, like: DType | None, value: Any
) -> npt.NDArray[Any]:
    kind = array.dtype.kind
    wanted = dtype or like
    if wanted is not None and not (array.size == 0 or _holds(wanted, kind)):
        # An operand's type is followed where it can be: `int_tensor * 1.5` is an error, as in TensorFlow.
        raise TypeError(f"Cannot convert {value} to EagerTensor of dtype {wanted.error_name}")
    if wanted is None:
        if array.size == 0 or kind == "f":
            wanted = float32
        elif kind == "b":
            wanted = bool_
        elif kind == "c":
            wanted = complex128
        elif kind == "u" or array.min() < _INT32.min or array.max() > _INT32.max:
            wanted = int64
        else:
            wanted = int32
    if wanted.is_integer and array.size and kind in "iu":
        limits = np.iinfo(wanted.numpy)
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(
                f"Cannot convert {value} to EagerTensor of dtype {wanted.error_name}: out of range"
            )
    return array.astype(wanted.numpy)


def _retyped(array: npt.NDArray[Any], wanted: DType | None, value: Any, *, forced: bool) -> npt.NDArray[Any]:
    """An array with its type, or the wanted one where that loses no more than precision."""
    if array.dtype.kind in "SUO":
        return _texts(array, wanted if forced else None)
    have = of_numpy(array.dtype)
    if wanted is None or wanted is have:
        return array.astype(have.numpy)
    if _holds(wanted, array.dtype.kind):
        return array.astype(wanted.numpy)
    if forced:
        raise TypeError(f"Cannot convert {value} to EagerTensor of dtype {wanted.error_name}")
    return array.astype(have.numpy)


def _holds(wanted: DType, kind: str) -> bool:
    """Whether values of a NumPy kind may become elements of a type without a cast."""
    return wanted.numpy.kind in {"b": "b", "i": "iufc", "u": "iufc", "f": "fc", "c": "c"}[kind]


def _texts(value: Any, dtype: DType | None) -> npt.NDArray[Any]:
    if dtype is not None and dtype is not string:
        raise TypeError(f"Cannot convert {value} to EagerTensor of dtype {dtype.error_name}")
    array = np.array(value, dtype=object)
    encoded = np.empty(array.shape, object)
    for index in np.ndindex(array.shape):
        text = array[index]
        if isinstance(text, str):
            text = text.encode()
        if not isinstance(text, bytes):
            raise TypeError(f"Cannot convert {text!r} to EagerTensor of dtype string")
        encoded[index] = bytes(text)
    return encoded


def _first_leaf(value: Any) -> Any:
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return None if isinstance(value, list | tuple) else value


def _is_empty(value: Any) -> bool:
    return isinstance(value, list | tuple)


def dtype_argument(dtype: Any) -> DType | None:
    """The type named by a ``dtype=`` argument."""
    return None if dtype is None else as_dtype(dtype)


__all__ = ["dtype_argument", "to_array", "to_pair", "to_tensor"]
