"""Softmax and its logarithm."""

from typing import Any

import numpy as np

from allotment import errors
from allotment.tf.dispatch import thread
from allotment.tf.ops.arguments.integers import attribute_argument, kernel_error, number_argument
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import transpose
from allotment.tf.ops.array.shapes import rank as number_of_axes
from allotment.tf.ops.arrays import Array, as_array, in_single
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.partition import invert_permutation
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.math.sequences import range as range_of
from allotment.tf.ops.reduction.folding import reduce_along
from allotment.tf.ops.table import Operation, dims, operation
from allotment.tf.ops.types.element_types import check_attribute
from allotment.tf.tensors.dtype import float32
from allotment.tf.tensors.tensor import EagerTensor, Tensor


def below_zero(logits: Array) -> Any:
    """Logits below zero, so that no exponential overflows: the result is the same."""
    return np.subtract(logits, reduce_along(np.maximum, logits, (-1,), None, True, -np.inf))


@in_single
def _softmax(logits: Array) -> Any:
    result = below_zero(logits)
    np.exp(result, out=result)
    return np.true_divide(result, np.sum(result, -1, keepdims=True), out=result)


@in_single
def _log_softmax(logits: Array) -> Any:
    result = below_zero(logits)
    return np.subtract(result, log_sum(result)[..., None], out=result)


def log_sum(shifted: Array) -> Any:
    """The logarithm of the sum of exponentials along the last axis."""
    total = as_array(np.sum(np.exp(shifted), -1))
    return np.log(total, out=total)


def vector_fault(logits: Array) -> str | None:
    """Return the fault of logits that have no axis of classes, or ``None``."""
    return None if logits.ndim else f"logits must have >= 1 dimension, got {dims(logits)}"


def _softmax_shape(c: Inference) -> list[Output]:
    return c.one(c.at_least(0, 1))


_softmax_row = operation("Softmax", _softmax, shape=_softmax_shape, fault=vector_fault)
_log_softmax_row = operation("LogSoftmax", _log_softmax, shape=_softmax_shape, fault=vector_fault)


def softmax(logits: Any, axis: Any = None, name: str | None = None) -> EagerTensor:
    """Exponentials divided by their sum along an axis, the last without ``axis``. As ``tf.nn.softmax``.

    Raises:
        InvalidArgumentError: The tensor has no such axis, or none at all.
    """
    return _along(_softmax_row, to_tensor(logits), axis, name)


def log_softmax(logits: Any, axis: Any = None, name: str | None = None) -> EagerTensor:
    """The logarithm of ``softmax``, exact where that is near zero. As ``tf.nn.log_softmax``."""
    return _along(_log_softmax_row, to_tensor(logits), axis, name)


def _along(row: Operation, logits: EagerTensor, axis: Any, name: str | None) -> EagerTensor:
    """Run an operation that works on the last axis on another one."""
    order = order_with_last(logits, axis)
    if order is None:
        made: EagerTensor = run(row, (logits,), name=name)
        if thread.state.in_function and type(made) is EagerTensor:
            made._activation = row.name, logits
        return made
    known = isinstance(order, list)
    back = sorted(range(len(order)), key=order.__getitem__) if known else invert_permutation(order)
    return transpose(run(row, (transpose(logits, order),), name=name), back)


def order_with_last(logits: EagerTensor, axis: Any, *, by_a_kernel: bool = False) -> Any:
    """The axes with one moved to the end, ``None`` if it is there; a tensor where a graph does not know the rank.

    ``by_a_kernel`` says that in TensorFlow an operation refuses an axis that is not there.
    """
    rank = rank_of(logits)
    if isinstance(axis, float) and rank is not None:
        axis = _whole_axis(axis, rank)
    number = -1 if axis is None else _axis_argument(axis)
    if number == -1:
        return None
    if rank is None:
        every = range_of(number_of_axes(logits))
        return concat([every[:number], every[number + 1 :], every[number:][:1]], 0)
    if number == rank - 1:
        return None
    if not -rank <= number < rank:
        text = (
            f"`axis` ({number}) must be in the range [{-rank}, {rank}) where {rank} is the number of dimensions in "
            "the input."
        )
        if by_a_kernel:
            raise kernel_error(errors.InvalidArgumentError, text)
        raise errors.InvalidArgumentError(None, None, text)
    return [axis for axis in range(rank) if axis != number % rank] + [number % rank]


def _axis_argument(axis: Any) -> int:
    return number_argument(axis, "axis") if isinstance(axis, Tensor) else attribute_argument(axis, "axis")


def _whole_axis(axis: float, rank: int) -> float:
    """Check an axis that is no whole number: it may be the last one and no other.

    Raises:
        InvalidArgumentError, ValueError, TypeError: As TensorFlow's operations that move the axis to the end.
    """
    if axis in (-1, rank - 1) or not -rank <= axis < rank:
        return axis
    if axis + 1 > rank - 1:
        text = f"Requires start <= limit when delta > 0: {axis + 1}/{rank - 1}"
        raise kernel_error(errors.InvalidArgumentError, text)
    check_attribute("Transpose", "Tperm", float32)
    return axis


__all__ = ["log_softmax", "softmax"]
