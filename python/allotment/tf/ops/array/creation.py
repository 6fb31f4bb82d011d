"""Operations that make tensors of values: constants, fills, ranges."""

import math
from contextlib import suppress
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from allotment import errors
from allotment.devices import placement_log
from allotment.devices.placement import Placement, current_placement, thread
from allotment.tf.ops import faults
from allotment.tf.ops.arguments.shapes import shape_argument
from allotment.tf.ops.convert import dtype_argument, to_array, to_tensor, to_tensor_if_it_fits
from allotment.tf.ops.execute import bring, compute, run
from allotment.tf.ops.executor import value_memory
from allotment.tf.ops.inference.common import unchanged
from allotment.tf.ops.inference.shape_functions import Inference, Output, lengths, multiplied, shape_text
from allotment.tf.ops.table import CPU_ONLY, EVERYWHERE, Host, operation
from allotment.tf.ops.table import dims as shown
from allotment.tf.ops.values import TensorsInsideError
from allotment.tf.tensors.dtype import BY_NUMPY, DType, as_dtype, float32, int32, string
from allotment.tf.tensors.tensor import EagerTensor, Tensor, tensor_of
from allotment.tf.tensors.tensor_shape import TensorShape

_INT32_MAX = 2**31 - 1

_const = operation("_EagerConst", np.copy, shape=unchanged, host=Host.NEVER)


def eager_const(value: Any, dtype: DType | None = None) -> EagerTensor:
    """Make a tensor of a Python value or an array, on the device of the scope.

    Texts and int32 stay in host memory, whatever the device (placement, section 5.3).
    """
    placement = current_placement()
    if placement.graph is not None:
        return placement.constant(value, dtype)
    host = placement.host
    # Made on the host first: the element type decides which devices can have it.
    array = compute(placement, host, host, _const.name, None, to_array, value, dtype)
    return _settle(placement, tensor_of(array, BY_NUMPY[array.dtype], host, host))


def _settle(placement: Placement, made: EagerTensor) -> EagerTensor:
    kinds = CPU_ONLY if made._dtype is string else EVERYWHERE
    device = placement.place(kinds, _const.name, None)
    home = value_memory(made._dtype, device, placement.host)
    if device is not placement.host:
        made = tensor_of(bring(placement, _const, device, home, 0, made, None), made._dtype, device, home)
    if placement.logging:
        placement_log.executing(_const.name, device.name)
    return made


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> EagerTensor:
    """Make a constant tensor. As ``tf.constant``.

    Args:
        value: A Python number, text, (nested) sequence of them, an array, or a tensor.
        dtype: The element type; without it that of the value: Python floats become float32, integers int32.
        shape: The shape; one number fills it, as many numbers as it has are arranged in it.
        name: Only looked at in graph mode.

    Raises:
        TypeError: The value is of another sort than the type, or has another number of elements than the shape.
        ValueError: The value is of a kind that has no tensor, or a sequence with tensors in it.
    """
    wanted = dtype_argument(dtype)
    if thread.state.graph is not None:
        return graph_constant(value, wanted, shape, name)
    if isinstance(value, EagerTensor):
        if wanted is not None and wanted is not value._dtype:
            raise TypeError(
                f"Expected tensor {value._array} with dtype {wanted!r}, but got dtype {value._dtype!r}."
            )
        made = value
    else:
        # A variable's value is cast, as an array is.
        given = np.asarray(value) if hasattr(value, "_as_tensor") else value
        try:
            made = eager_const(given, wanted)
        except TensorsInsideError as error:
            error.__traceback__ = None
            raise ValueError(str(error)) from None
    if shape is None:
        return made
    lengths = shape_argument(shape)
    if any(length < 0 for length in lengths):
        raise ValueError(f"Dimension {min(lengths)} must be >= 0")
    if lengths == made._array.shape:
        return made
    if math.prod(lengths) == made._array.size:
        return run(_reshape, (made,), shape_input(lengths))  # type: ignore[no-any-return]
    if made._array.size == 1:
        return run(_fill, (reshape(made, ()),), shape_input(lengths))  # type: ignore[no-any-return]
    raise TypeError(
        f"Eager execution of tf.constant with unsupported shape. Tensor {made._array} (converted from {value}) has "
        f"{made._array.size:d} elements, but got `shape` {lengths} with {math.prod(lengths):d} elements)."
    )


def graph_constant(
    value: Any, dtype: DType | None, shape: Any, name: str, *, repeats_last: bool = False
) -> EagerTensor:
    """Add a constant to the graph; the last of too few values may fill the shape.

    Raises:
        TypeError: A tensor, or a sequence with tensors in it; another number of values than the shape has.
        ValueError: A value that no tensor can hold.
    """
    if isinstance(value, Tensor):
        raise TypeError(f"a constant of a graph is made of a value, and {value!r} is a tensor of its own")
    recording: Any = current_placement()
    lengths = None if shape is None else shape_argument(shape)
    try:
        return recording.constant(value, dtype, lengths, name, repeats_last)  # type: ignore[no-any-return]
    except TensorsInsideError as error:
        error.__traceback__ = None
        raise TypeError(str(error)) from None


def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None
) -> EagerTensor:
    """Convert a value to a tensor; a tensor is returned as it is. As ``tf.convert_to_tensor``.

    Raises:
        ValueError: A tensor of another type than ``dtype``, or a value of a kind that has no tensor.
        TypeError: The value does not fit ``dtype``.
    """
    if dtype is None:
        return to_tensor_if_it_fits(value, dtype_argument(dtype_hint))
    return to_tensor(value, as_dtype(dtype))


def shape_input(shape: Any, vector_for: str | None = None, *, or_length: bool = False) -> tuple[int, ...]:
    """The lengths of a shape that is an input of an operation: a constant of its own, unless it is a tensor.

    The constant is made only where somebody sees it, in the log. ``vector_for`` is the name of an operation that takes
    no single length for a shape. In a graph none does, but for functions that make a vector of it: ``or_length``.

    Raises:
        InvalidArgumentError, ValueError, TypeError: It is no shape.
    """
    lengths = shape_argument(shape)
    in_graph = thread.state.graph is not None
    if (vector_for is not None or in_graph) and not or_length and _is_length(shape):
        if in_graph:
            raise ValueError("Shape must be rank 1 but is rank 0")
        text = "shape must be a vector of {int32,int64}, got shape []"
        raise errors.InvalidArgumentError(None, None, text + faults.tail(vector_for or "", None))
    if current_placement().logging and not isinstance(shape, Tensor):
        large = any(length > _INT32_MAX for length in lengths)
        eager_const(np.array(lengths, np.int64 if large else np.int32))
    return lengths


def _is_length(shape: Any) -> bool:
    if isinstance(shape, Tensor):
        return shape.shape.rank == 0
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


def _counted(array: npt.NDArray[Any], shape: tuple[int, ...]) -> tuple[int, int]:
    """The products of the lengths of an array and of a shape with a -1 in it.

    Lengths of zero do not count where both have some, so that -1 gets a length there, too.
    """
    if 0 not in shape:
        return array.size, math.prod(length for length in shape if length != -1)
    return math.prod(filter(None, array.shape)), math.prod(each for each in shape if each not in (0, -1))


def _reshape_fault(array: npt.NDArray[Any], shape: tuple[int, ...]) -> str | None:
    known = math.prod(length for length in shape if length != -1)
    if shape.count(-1) > 1:
        return f"Only one input size may be -1, not both {shape.index(-1)} and {shape.index(-1, shape.index(-1) + 1)}"
    if -1 in shape:
        size, divisor = _counted(array, shape)
        if (0 in shape and array.size) or (0 not in array.shape and size % divisor):
            return (
                f"Input to reshape is a tensor with {array.size} values, but the requested shape requires a "
                f"multiple of {known}"
            )
    elif known != array.size:
        return f"Input to reshape is a tensor with {array.size} values, but the requested shape has {known}"
    return None


def _reshaped(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    if -1 in shape and array.size == 0:
        size, divisor = _counted(array, shape)
        shape = tuple(size // divisor if length == -1 else length for length in shape)
    return np.reshape(array, shape)


def _reshape_shape(c: Inference, shape: Any) -> list[Output]:
    dims, source = lengths(shape), c.shape()
    if dims is None:
        return c.one(None)
    total = None if source is None else multiplied(*source)
    wanted = multiplied(*(each for each in dims if each is not None))
    holes = dims.count(None)
    if source is not None and source.count(None) == 1 and holes == 0 and wanted is not None:
        known = multiplied(*(each for each in source if each is not None))
        if known and wanted % known:
            c.refuse(f"Dimension size must be evenly divisible by {known} but is {wanted}")
    if total is None or wanted is None:
        return c.one(dims)
    refused = f"Cannot reshape a tensor with {total} elements to shape {shape_text(dims)}"
    if wanted != total and (holes == 0 or wanted == 0):
        c.refuse(f"{refused} ({wanted} elements)")
    if holes == 1 and wanted:
        if total % wanted:
            c.refuse(f"{refused}: {total} is not a multiple of {wanted}")
        dims = tuple(total // wanted if each is None else each for each in dims)
    return c.one(dims)


# The result shares the input's memory, as TensorFlow's does.
_reshape = operation("Reshape", _reshaped, shape=_reshape_shape, fault=_reshape_fault)


def reshape(tensor: Any, shape: Any, name: str | None = None) -> EagerTensor:
    """Arrange the same elements in another shape; one length may be -1. As ``tf.reshape``."""
    return run(_reshape, (to_tensor(tensor),), shape_input(shape), name=name)  # type: ignore[no-any-return]


def _full(value: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    return np.full(shape, value.reshape(()), value.dtype)


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


_fill = operation("Fill", _full, shape=_fill_shape, fault=_fill_fault, reads_anywhere=True)


def _filling(value: Any, dtype: DType | None = None) -> EagerTensor:
    """The value to fill with: it stays on the host, so that a device can be filled to the last byte."""
    placement = current_placement()
    if placement.graph is not None or isinstance(value, Tensor) or hasattr(value, "_as_tensor"):
        return to_tensor(value, None if isinstance(value, Tensor) else dtype)
    host = placement.host
    array = compute(placement, host, host, _const.name, None, to_array, value, dtype)
    made = tensor_of(array, BY_NUMPY[array.dtype], host, host)
    device = placement.place(CPU_ONLY if made._dtype is string else EVERYWHERE, _const.name, None)
    if placement.logging:
        placement_log.executing(_const.name, device.name)
    return made


def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> EagerTensor:
    """Make a tensor of a shape whose elements are all one value. As ``tf.fill``; ``layout`` has no effect."""
    return run(_fill, (_filling(value),), shape_input(dims), name=name)  # type: ignore[no-any-return]


def zeros(shape: Any, dtype: Any = float32, name: str | None = None, layout: Any = None) -> EagerTensor:
    """Make a tensor of zeros (false, empty texts). As ``tf.zeros``; ``layout`` has no effect."""
    wanted = as_dtype(dtype)
    return _full_of("" if wanted is string else np.zeros((), wanted.numpy), shape, name)


def ones(shape: Any, dtype: Any = float32, name: str | None = None, layout: Any = None) -> EagerTensor:
    """Make a tensor of ones. As ``tf.ones``; ``layout`` has no effect."""
    wanted = as_dtype(dtype)
    return _full_of(to_array(1, string) if wanted is string else np.ones((), wanted.numpy), shape, name)


def _full_of(value: Any, shape: Any, name: str | None) -> EagerTensor:
    lengths = _as_tensor_shape(shape)
    check_int32(lengths)
    return run(_fill, (_filling(value),), shape_input(lengths, or_length=True), name=name)  # type: ignore[no-any-return]


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


__all__ = [
    "constant",
    "convert_to_tensor",
    "eager_const",
    "fill",
    "graph_constant",
    "ones",
    "reshape",
    "zeros",
]
