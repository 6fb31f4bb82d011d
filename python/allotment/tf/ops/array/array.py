"""Operations that keep the elements as they are, or change their type."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from allotment import errors
from allotment.tf.dispatch import thread
from allotment.tf.ops import faults
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.conversion.casting import cast_tensor
from allotment.tf.ops.convert import dtype_of, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import cast_to, each_unchanged, unchanged
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.table import Host, dims, operation
from allotment.tf.ops.types.element_types import check_attribute
from allotment.tf.tensors.dtype import DType, as_dtype, int32, int64
from allotment.tf.tensors.indexed_slices import IndexedSlices
from allotment.tf.tensors.tensor import EagerTensor, Tensor
from allotment.tf.tensors.tensor_shape import TensorShape, as_shape


def _same(array: Array) -> Array:
    # The result shares the input's memory, as TensorFlow's does; on another device the input is a copy already.
    return array


#: The row of ``identity``.
IDENTITY: Final = operation("Identity", _same, shape=unchanged)
_stop_gradient = operation("StopGradient", _same, shape=unchanged)


def identity(input: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - the name TensorFlow has
    """Return a tensor of the same value on the device of the scope. As ``tf.identity``.

    On the device where the input is, both share the memory; on another one it is a copy.
    """
    if type(input) is IndexedSlices:
        parts = input.values, input.indices, input.dense_shape
        return IndexedSlices(*(None if each is None else identity(each) for each in parts))  # type: ignore[return-value]
    return run(IDENTITY, (to_tensor(input),), name=name)  # type: ignore[no-any-return]


def stop_gradient(input: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - the name TensorFlow has
    """Return the same value as a constant for gradients. As ``tf.stop_gradient``."""
    if type(input) is IndexedSlices:
        parts = input.values, input.indices, input.dense_shape
        return IndexedSlices(*(None if each is None else stop_gradient(each) for each in parts))  # type: ignore[return-value]
    return run(_stop_gradient, (to_tensor(input),), name=name)  # type: ignore[no-any-return]


def _ensure_fault(array: Array, shape: TensorShape) -> str | None:
    if shape.is_compatible_with(array.shape):
        return None
    wanted = ",".join("?" if length is None else str(length) for length in shape)
    return f"Shape of tensor input {dims(array)} is not compatible with expected shape [{wanted}]."


def _ensured(array: Array, shape: TensorShape) -> Array:
    return array


def _ensured_shape(c: Inference, shape: Any) -> list[Output]:
    return c.one(c.merged(c.shape(), shape._dims))


_ensure_shape = operation("EnsureShape", _ensured, shape=_ensured_shape, fault=_ensure_fault)


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> EagerTensor:
    """Return the input if it has a shape; ``None`` stands for any length. As ``tf.ensure_shape``.

    Raises:
        InvalidArgumentError: It has another shape.
    """
    return run(_ensure_shape, (to_tensor(x),), as_shape(shape), name=name)  # type: ignore[no-any-return]


def widened(value: Any) -> Any:
    """A tensor of narrow or unsigned integers as one of int64, for arguments that take all; anything else as it is."""
    dtype = dtype_of(value)
    return (
        cast(value, int64)
        if dtype is not None and dtype.is_integer and dtype not in (int32, int64)
        else value
    )


def cast(x: Any, dtype: Any, name: str | None = None) -> EagerTensor:
    """Change the element type. As ``tf.cast``.

    Floats become integers by cutting off their fraction, complex numbers lose their imaginary part, and what is
    not zero is true. A tensor that has the type is returned as it is.

    Raises:
        UnimplementedError: Texts, which have ``tf.strings.to_number`` and ``tf.strings.as_string``; in a graph when
            it runs.
    """
    wanted = as_dtype(dtype)
    if dtype_of(x) is wanted:
        return x  # type: ignore[no-any-return]
    if type(x) is IndexedSlices:
        return IndexedSlices(cast(x.values, wanted, name), x.indices, x.dense_shape)  # type: ignore[return-value]
    tensor = to_tensor(x)
    if tensor._dtype is wanted:
        return tensor
    return cast_tensor(tensor, wanted, name)


def _saturate(array: Array, dtype: DType) -> Array:
    if array.dtype.kind == "c" and not dtype.is_complex:
        array = array.real
    low, high = (limit[()] for limit in saturation_limits(array.real.dtype, dtype))
    if array.dtype.kind != "c":
        return np.clip(array, low, high).astype(dtype.numpy)
    made = np.empty(array.shape, array.dtype, like=array)
    np.clip(array.real, low, high, out=made.real)
    np.clip(array.imag, low, high, out=made.imag)
    return made.astype(dtype.numpy, copy=False)


def saturation_limits(have: np.dtype[Any], dtype: DType) -> tuple[Array, Array]:
    """The least and the greatest value of a real type that can be cast to another; infinities are outside."""
    real = dtype.real_dtype
    if have.kind == "f":
        own = np.finfo(have)
        if real.is_integer:
            # The type's own limits may lie between two floats: the ones inside are the limits that can be cast.
            return _inside(real.min, have), _inside(real.max, have)
        low, high = max(float(own.min), float(real.min)), min(float(own.max), float(real.max))
    else:
        whole = np.iinfo(have)
        low, high = max(int(real.min), int(whole.min)), min(int(real.max), int(whole.max))
    return np.array(low, have), np.array(high, have)


def _inside(limit: int, floats: np.dtype[Any]) -> Any:
    """The float nearest to a limit of integers that does not lie outside of it."""
    found = np.array(limit).astype(floats)
    if np.isinf(found):
        return np.copysign(np.finfo(floats).max, found)
    return np.nextafter(found, floats.type(0)) if abs(int(found)) > abs(int(limit)) else found


_saturate_row = operation("SaturateCast", _saturate, shape=cast_to, host=Host.NEVER)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> EagerTensor:
    """Change the element type; what lies outside of it becomes its limit. As ``tf.saturate_cast``.

    Raises:
        TypeError: Truth values or texts, which have no limits.
    """
    wanted = as_dtype(dtype)
    tensor = to_tensor(value)
    for each in (tensor._dtype, wanted):
        if not each.is_numeric:
            raise TypeError(f"Cannot find minimum value of {each!r} with type {each!r}.")
    return run(_saturate_row, (tensor,), wanted, name=name)  # type: ignore[no-any-return]


def _bitcast_fault(array: Array, dtype: DType) -> str | None:
    have, wanted = array.dtype.itemsize, dtype.numpy.itemsize
    if have >= wanted or (array.ndim and array.shape[-1] == wanted // have):
        return None
    return f"Cannot bitcast from {array.dtype} to {dtype.name}: the last axis is not {wanted // have} long"


def _bitcast(array: Array, dtype: DType) -> Array:
    have, wanted = array.dtype.itemsize, dtype.numpy.itemsize
    if have == wanted:
        return array.view(dtype.numpy)
    if have > wanted:
        return array[..., np.newaxis].view(dtype.numpy)
    return array.view(dtype.numpy)[..., 0]


def _bitcast_shape(c: Inference, dtype: Any) -> list[Output]:
    have, wanted = c.dtype().numpy.itemsize, dtype.numpy.itemsize
    dims = c.shape()
    if have < wanted:
        dims = c.at_least(0, 1)
        if dims is not None:
            c.same(dims[-1], wanted // have)
            dims = dims[:-1]
    elif have > wanted and dims is not None:
        dims = (*dims, have // wanted)
    return c.one(dims, dtype)


# The result shares the input's memory, as TensorFlow's does.
_bitcast_row = operation("Bitcast", _bitcast, shape=_bitcast_shape, fault=_bitcast_fault)


def bitcast(input: Any, type: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - TensorFlow's names
    """Read the same bytes as elements of another type. As ``tf.bitcast``.

    Smaller elements add an axis at the end, larger ones take it away.
    """
    wanted = as_dtype(type)
    check_attribute("Bitcast", "type", wanted, name)
    return run(_bitcast_row, (to_tensor(input),), wanted, name=name)  # type: ignore[no-any-return]


def is_tensor(x: Any) -> bool:
    """Whether it is a tensor or a variable. As ``tf.is_tensor``."""
    return isinstance(x, Tensor) or hasattr(x, "_as_tensor")


def executing_eagerly() -> bool:
    """Whether operations run when they are called. As ``tf.executing_eagerly``."""
    return thread.state.graph is None


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a tensor as an array, ``None`` for what has no value that stays. As ``tf.get_static_value``."""
    if isinstance(tensor, Tensor):
        return tensor._static_value()
    return None if hasattr(tensor, "_as_tensor") else tensor


def _identity_n(*arrays: Array) -> tuple[Array, ...]:
    # The results share the inputs' memory, as TensorFlow's do.
    return arrays


_identity_n_row = operation("IdentityN", _identity_n, shape=each_unchanged, makes_tuple=True)


def identity_n(input: Sequence[Any], name: str | None = None) -> list[EagerTensor]:  # noqa: A002 - TensorFlow's name
    """Return tensors of the same values on the device of the scope. As ``tf.identity_n``.

    Raises:
        InvalidArgumentError: There is none.
    """
    if not input:
        raise errors.InvalidArgumentError(
            None, None, f"Length for attr 'T' of 0 must be at least minimum 1{faults.tail('IdentityN', name)}"
        )
    return list(run(_identity_n_row, [to_tensor(each) for each in input], name=name))


__all__ = [
    "bitcast",
    "cast",
    "ensure_shape",
    "executing_eagerly",
    "get_static_value",
    "identity",
    "identity_n",
    "is_tensor",
    "saturate_cast",
    "stop_gradient",
    "widened",
]
