"""Converts Python values, arrays and variables to tensors, alone or beside other operands."""

from typing import Any

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.conversion.casting import cast_tensor
from allotment.tf.ops.conversion.constants import eager_const
from allotment.tf.ops.conversion.packing import PACK
from allotment.tf.ops.conversion.ranges import range_of
from allotment.tf.ops.execute import run
from allotment.tf.ops.values import TensorsInsideError, to_array
from allotment.tf.tensors.dtype import DType, as_dtype, int32, int64
from allotment.tf.tensors.indexed_slices import IndexedSlices
from allotment.tf.tensors.tensor import EagerTensor, Tensor
from allotment.tf.tensors.tensor_shape import TensorShape

_INT32_MAX = 2**31 - 1


def to_tensor(value: Any, dtype: DType | None = None, like: DType | None = None) -> EagerTensor:
    """Convert a value to a tensor on the device of the current scope; a tensor is returned as it is.

    ``dtype`` is the type that it must have, ``like`` the one that everything but tensors must become. An object that
    NumPy cannot read is converted by its method ``__tf_tensor__``.

    Raises:
        ValueError: A tensor of another type than ``dtype``; a value that no tensor can hold.
        TypeError: A value of another sort than ``dtype`` or ``like``.
    """
    if isinstance(value, Tensor):
        if dtype is not None and value._dtype is not dtype:
            raise ValueError(
                f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype {value._dtype.name}: {value!r}"
            )
        return value  # type: ignore[return-value]
    convert = getattr(value, "_as_tensor", None)
    if convert is not None:
        if isinstance(value, IndexedSlices) and dtype is not None and value.dtype is not dtype:
            raise ValueError(
                f"Incompatible tensor conversion requested to `dtype` {dtype.name} for IndexedSlices ({value}) with "
                f"dtype {value.dtype.name}"
            )
        converted: EagerTensor = convert()
        if dtype is not None and converted._dtype is not dtype:
            raise ValueError(
                f"Incompatible type conversion requested to type {dtype.name} for `tf.Variable of type "
                f"{converted._dtype.name}. (Variable: {value!r})"
            )
        return converted
    wanted = dtype or like
    if type(value) is range:
        return range_of([eager_const(each, wanted) for each in (value.start, value.stop, value.step)], wanted)
    if isinstance(value, TensorShape):
        wanted = _type_of_shape(value, wanted)
        return eager_const(value.as_list(), wanted)
    convert = None
    try:
        return eager_const(value, wanted)
    except TensorsInsideError:
        pass
    except (TypeError, ValueError):
        convert = getattr(value, "__tf_tensor__", None)
        if convert is None:
            raise
    return packed(value, wanted) if convert is None else to_tensor(convert(wanted, None), dtype)


def tensor_or_slices(value: Any, dtype: DType | None = None, like: DType | None = None) -> Any:
    """Convert a value to a tensor; ``IndexedSlices`` are returned as they are.

    Raises:
        ValueError, TypeError: As ``to_tensor``.
    """
    if not isinstance(value, IndexedSlices):
        return to_tensor(value, dtype, like)
    if dtype is not None and value.dtype is not dtype:
        raise ValueError(
            f"Incompatible tensor conversion requested to `dtype` {dtype.name} for `value` ({value}) with dtype "
            f"{value.dtype.name}."
        )
    return value


def packed(values: Any, dtype: DType | None) -> EagerTensor:
    """Make a tensor of nested sequences with tensors in them.

    Other values take the type of the first tensor. If ``dtype`` is another one, all tensors are cast to it.
    """
    first = _first_type(values)
    assert first is not None, "called for tensors only"
    return _packed(values, dtype or first, cast_tensors=dtype is not None and dtype is not first)


def _packed(values: Any, dtype: DType, *, cast_tensors: bool) -> EagerTensor:
    tensors = []
    for value in values:
        if isinstance(value, Tensor) or hasattr(value, "_as_tensor"):
            tensor = to_tensor(value)
            tensors.append(cast_tensor(tensor, dtype) if cast_tensors else tensor)
        elif holds_tensors(value):
            tensors.append(_packed(value, dtype, cast_tensors=cast_tensors))
        else:
            tensors.append(eager_const(value, dtype))
    name = "packed" if all(isinstance(value, Tensor) for value in values) else None
    return run(PACK, tensors, axis=0, name=name)  # type: ignore[no-any-return]


def _first_type(values: Any) -> DType | None:
    """Return the type of the first tensor in nested sequences."""
    for value in values:
        found = _first_type(value) if isinstance(value, list | tuple) else dtype_of(value)
        if found is not None:
            return found
    return None


def holds_tensors(values: Any) -> bool:
    """Whether nested sequences have tensors or variables in them."""
    return isinstance(values, list | tuple) and any(
        holds_tensors(value) or isinstance(value, Tensor) or hasattr(value, "_as_tensor") for value in values
    )


def dtype_of(value: Any) -> DType | None:
    """Return the type of a tensor or variable, ``None`` of anything else."""
    dtype = getattr(value, "dtype", None)
    return dtype if isinstance(dtype, DType) else None


def to_tensor_if_it_fits(value: Any, hint: DType | None) -> EagerTensor:
    """Convert a value to the type of a hint if it fits, else to its own type; tensors keep theirs."""
    if hint is not None:
        try:
            return to_tensor(value, like=hint)
        except (TypeError, ValueError):
            pass
    return to_tensor(value)


def to_pair(x: Any, y: Any) -> tuple[EagerTensor, EagerTensor]:
    """Convert two operands of one type: Python values take the type of the tensor beside them, or of the first.

    In a graph that is the type of the first in any case: nodes' inputs are converted one behind the other.
    """
    if thread.state.graph is not None:
        x = to_tensor(x)
        return x, to_tensor(y, like=x._dtype)
    if isinstance(x, Tensor) or hasattr(x, "_as_tensor"):
        x = to_tensor(x)
        return x, to_tensor(y, like=x._dtype)
    if isinstance(y, Tensor) or hasattr(y, "_as_tensor"):
        y = to_tensor(y)
        return to_tensor(x, like=y._dtype), y
    x = to_tensor(x)
    return x, to_tensor(y, like=x._dtype)


def to_pair_by_first(x: Any, y: Any) -> tuple[EagerTensor, EagerTensor]:
    """Convert two operands: the first by itself, the second to its type if it can.

    So TensorFlow does for sums, products of matrices and quotients; a misfit is left to the operation.
    """
    x = to_tensor(x)
    return x, to_tensor_if_it_fits(y, x._dtype)


def to_fixed_type(dtype: DType, *values: Any, plain: bool = True) -> list[EagerTensor]:
    """Convert inputs whose element type an operation fixes; tensors of another type are left to it to refuse.

    TensorFlow converts one after the other where an argument is a list or the like: of the inputs, or of the others if
    they are not ``plain``.

    Raises:
        ValueError: An input is a tensor of another type, and an argument is not plain.
        TypeError: A Python value of another sort.
    """
    plain = plain and all(
        isinstance(value, Tensor | int | float | np.ndarray) or hasattr(value, "_as_tensor")
        for value in values
    )
    if plain or thread.state.graph is not None:
        return [to_tensor(value, like=dtype) for value in values]
    return [to_tensor(value, dtype) for value in values]


def _type_of_shape(shape: TensorShape, wanted: DType | None) -> DType:
    """Return the type of a shape as a tensor.

    Raises:
        TypeError: Another type than those of lengths is wanted.
        ValueError: A length is not known, or too large for the type.
    """
    if wanted is not None and wanted not in (int32, int64):
        raise TypeError(
            f"Cannot convert TensorShape {shape} to dtype {wanted}. Allowed dtypes are tf.int32 and tf.int64."
        )
    if not shape.is_fully_defined():
        raise ValueError(f"Cannot convert a partially known TensorShape {shape} to a Tensor.")
    large = any(length is not None and length > _INT32_MAX for length in shape)
    if large and wanted is int32:
        raise ValueError(
            f"Cannot convert TensorShape {shape} to dtype int32; a dimension is too large. Consider using tf.int64."
        )
    return wanted or (int64 if large else int32)


def dtype_argument(dtype: Any) -> DType | None:
    """Read a ``dtype=`` argument."""
    return None if dtype is None else as_dtype(dtype)


__all__ = [
    "dtype_argument",
    "dtype_of",
    "holds_tensors",
    "packed",
    "to_array",
    "to_fixed_type",
    "to_pair",
    "to_pair_by_first",
    "to_tensor",
    "to_tensor_if_it_fits",
]
