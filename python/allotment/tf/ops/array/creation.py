"""Operations that make tensors of one value, and what takes a shape as its input."""

from contextlib import suppress
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from allotment import errors
from allotment.arrays.numpy import current_library
from allotment.devices.dispatch import current_placement
from allotment.tf.dispatch import thread
from allotment.tf.ops import faults
from allotment.tf.ops.arguments.shapes import shape_argument
from allotment.tf.ops.array.shapes import shape
from allotment.tf.ops.arrays import Array, full
from allotment.tf.ops.conversion.constants import eager_const, host_const
from allotment.tf.ops.convert import to_array, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import unchanged
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.table import dims as shown
from allotment.tf.ops.table import operation
from allotment.tf.ops.values import TensorsInsideError
from allotment.tf.tensors.dtype import DType, as_dtype, float32, int32, string
from allotment.tf.tensors.tensor import EagerTensor, Tensor
from allotment.tf.tensors.tensor_shape import TensorShape

_INT32_MAX = 2**31 - 1


def shape_input(shape: Any, vector_for: str | None = None, *, or_length: bool = False) -> tuple[int, ...]:
    """The lengths of a shape that is an input of an operation: a constant of its own, unless it is a tensor.

    The constant is made only if the log shows it. ``vector_for`` is the name of an operation that takes
    no single length for a shape. In a graph none does, but for functions that make a vector of it: ``or_length``.

    Raises:
        InvalidArgumentError, ValueError, TypeError: It is no shape.
    """
    lengths = shape_argument(shape)
    in_graph = thread.state.graph is not None
    if (vector_for is not None or in_graph) and not or_length and is_length(shape):
        if in_graph:
            raise ValueError("Shape must be rank 1 but is rank 0")
        text = "shape must be a vector of {int32,int64}, got shape []"
        raise errors.InvalidArgumentError(None, None, text + faults.tail(vector_for or "", None))
    if current_placement().logging and not isinstance(shape, Tensor):
        large = any(length > _INT32_MAX for length in lengths)
        eager_const(np.array(lengths, np.int64 if large else np.int32))
    return lengths


def is_length(shape: Any) -> bool:
    """Whether a shape is given as one number or a tensor without axes."""
    if isinstance(shape, Tensor) or hasattr(shape, "_as_tensor"):
        return bool(shape.shape.rank == 0)
    return isinstance(shape, SupportsIndex) and getattr(shape, "ndim", 0) == 0


def check_int32(shape: Any) -> None:
    """Check an argument that TensorFlow converts to int32 before it calls the operation; in graphs that is usual.

    Raises:
        TypeError: A Python value that is no whole number.
        ValueError: A value that has no tensor.
    """
    if thread.state.graph is not None or isinstance(shape, Tensor | TensorShape) or type(shape) is int:
        return
    if isinstance(shape, list | tuple) and all(type(each) is int for each in shape):
        return
    # Tensors among lengths are looked at where the shape is read.
    with suppress(TensorsInsideError):
        to_array(shape, int32)


def _full(value: npt.NDArray[Any], shape: tuple[int, ...]) -> Any:
    return current_library().full(shape, value.reshape(()), value.dtype)


def _fill_fault(value: npt.NDArray[Any], shape: tuple[int, ...]) -> str | None:
    # A vector of one number counts as the number.
    if value.shape not in ((), (1,)):
        return f"value must be a scalar, got shape {shown(value)}"
    negative = [length for length in shape if length < 0]
    return f"Dimension {negative[0]} must be >= 0" if negative else None


def _fill_shape(c: Inference, shape: Any) -> list[Output]:
    c.ranked(0, 0)
    if type(shape) is tuple and any(type(each) is int and each < 0 for each in shape):
        c.refuse(f"Fill dimensions must be >= 0, but are {list(shape)}")
    return c.one(c.requested(shape))


fill_row = operation("Fill", _full, shape=_fill_shape, fault=_fill_fault, reads_anywhere=True)


def _filling(value: Any, dtype: DType | None = None) -> EagerTensor:
    """The value to fill with: it stays on the host, so that a device can be filled to the last byte."""
    if thread.state.graph is not None or isinstance(value, Tensor) or hasattr(value, "_as_tensor"):
        return to_tensor(value, None if isinstance(value, Tensor) else dtype)
    return host_const(value, dtype)


def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> EagerTensor:
    """Make a tensor of a shape whose elements are all one value. As ``tf.fill``; ``layout`` has no effect."""
    return run(fill_row, (_filling(value),), shape_input(dims), name=name)  # type: ignore[no-any-return]


@in_name_scope("zeros")
def zeros(shape: Any, dtype: Any = float32, name: str | None = None, layout: Any = None) -> EagerTensor:
    """Make a tensor of zeros (false, empty texts). As ``tf.zeros``; ``layout`` has no effect."""
    wanted = as_dtype(dtype)
    return _full_of("" if wanted is string else np.zeros((), wanted.numpy), shape, name)


@in_name_scope("ones")
def ones(shape: Any, dtype: Any = float32, name: str | None = None, layout: Any = None) -> EagerTensor:
    """Make a tensor of ones. As ``tf.ones``; ``layout`` has no effect."""
    wanted = as_dtype(dtype)
    return _full_of(to_array(1, string) if wanted is string else np.ones((), wanted.numpy), shape, name)


def _full_of(value: Any, shape: Any, name: str | None) -> EagerTensor:
    lengths = _as_tensor_shape(shape)
    check_int32(lengths)
    return run(fill_row, (_filling(value),), shape_input(lengths, or_length=True), name=name)  # type: ignore[no-any-return]


def _as_tensor_shape(shape: Any) -> Any:
    """The lengths of a shape that ``TensorShape`` takes, sets and truth values among them; or else what was given.

    TensorFlow tries that first, and a conversion to int32 after it.
    """
    if isinstance(shape, int | Tensor | TensorShape) or hasattr(shape, "_as_tensor"):
        return shape
    if isinstance(shape, list | tuple) and all(type(length) is int for length in shape):
        return shape
    if isinstance(shape, np.ndarray):
        return shape.astype(np.int32) if shape.dtype.kind in "bf" else shape
    try:
        lengths = TensorShape(shape)
    except (TypeError, ValueError):
        return shape
    return lengths if lengths.is_fully_defined() else shape


def _zeros(array: Array) -> Array:
    return (
        np.full(array.shape, b"", object)
        if array.dtype == object
        else np.zeros(array.shape, array.dtype, like=array)
    )


_zeros_like = operation("ZerosLike", _zeros, shape=unchanged)


_ones_like = operation(
    "OnesLike",
    lambda array: full(array.shape, 1, array.dtype, like=array),
    shape=unchanged,
)


@in_name_scope("zeros_like")
def zeros_like(
    input: Any,  # noqa: A002 - the name TensorFlow has
    dtype: Any = None,
    name: str | None = None,
    layout: Any = None,
) -> EagerTensor:
    """Make a tensor of zeros (false, empty texts) with the shape of another. As ``tf.zeros_like``."""
    tensor = to_tensor(input)
    wanted = tensor._dtype if dtype is None else as_dtype(dtype)
    if wanted is not tensor._dtype:
        return zeros(shape(tensor), wanted, name)
    return run(_zeros_like, (tensor,), name=name)  # type: ignore[no-any-return]


@in_name_scope("ones_like")
def ones_like(
    input: Any,  # noqa: A002 - the name TensorFlow has
    dtype: Any = None,
    name: str | None = None,
    layout: Any = None,
) -> EagerTensor:
    """Make a tensor of ones with the shape of another. As ``tf.ones_like``."""
    tensor = to_tensor(input)
    wanted = tensor._dtype if dtype is None else as_dtype(dtype)
    if wanted is not tensor._dtype:
        return fill(shape(tensor), to_tensor(1 if wanted is not string else "", wanted), name)
    return run(_ones_like, (tensor,), name=name)  # type: ignore[no-any-return]


__all__ = ["eager_const", "fill", "ones", "ones_like", "zeros", "zeros_like"]
