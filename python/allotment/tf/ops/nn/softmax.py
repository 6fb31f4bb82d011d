"""Softmax, and the losses made of it."""

import math
from typing import Any

import numpy as np

from allotment import errors
from allotment.tf.ops.arguments.integers import attribute_argument, kernel_error, number_argument
from allotment.tf.ops.array.array import cast, zeros_like
from allotment.tf.ops.array.array import rank as number_of_axes
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import transpose
from allotment.tf.ops.array.sequences import range as range_of
from allotment.tf.ops.arrays import Array, in_single
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.gathering import where
from allotment.tf.ops.indexing.partition import invert_permutation
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.math.arithmetic import abs as absolute
from allotment.tf.ops.math.arithmetic import add, multiply, negative, subtract
from allotment.tf.ops.math.comparison import greater_equal
from allotment.tf.ops.math.real import exp, log1p
from allotment.tf.ops.nn.activations import relu
from allotment.tf.ops.table import Operation, dims, operation, same_shapes
from allotment.tf.ops.types.element_types import check_attribute
from allotment.tf.tensors.dtype import float32
from allotment.tf.tensors.tensor import EagerTensor, Tensor


def _shifted(logits: Array) -> Any:
    """Logits below zero, so that no exponential overflows: the result is the same."""
    return np.subtract(logits, np.max(logits, -1, keepdims=True, initial=-np.inf))


@in_single
def _softmax(logits: Array) -> Any:
    result = _shifted(logits)
    np.exp(result, out=result)
    return np.true_divide(result, np.sum(result, -1, keepdims=True), out=result)


@in_single
def _log_softmax(logits: Array) -> Any:
    result = _shifted(logits)
    return np.subtract(result, _log_sum(result)[..., None], out=result)


def _log_sum(shifted: Array) -> Any:
    total = np.asarray(np.sum(np.exp(shifted), -1))
    return np.log(total, out=total)


@in_single
def _cross_entropy(logits: Array, labels: Array) -> Any:
    # Rows of each are broadcast to each other: as many as the logits have are left.
    rows = _rows(logits), _rows(labels)
    shifted = np.broadcast_to(_shifted(rows[0]), np.broadcast_shapes(*(each.shape for each in rows)))
    losses = np.subtract(_log_sum(shifted)[..., None], shifted)
    np.multiply(losses, rows[1], out=losses)
    return np.sum(losses, -1).reshape(logits.shape[:-1])


def _rows(array: Array) -> Array:
    """An array with its last axis and one other."""
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


@in_single
def _sparse_cross_entropy(logits: Array, labels: Array) -> Any:
    shifted = _shifted(logits)
    losses = _log_sum(shifted)
    picked = np.take_along_axis(shifted, labels[..., None].astype(np.intp, copy=False), -1)
    return np.subtract(losses, picked[..., 0], out=losses)


def _vector_fault(logits: Array) -> str | None:
    return None if logits.ndim else f"logits must have >= 1 dimension, got {dims(logits)}"


def _pair_fault(logits: Array, labels: Array) -> str | None:
    for array in (logits, labels):
        fault = _vector_fault(array)
        if fault is not None:
            return fault
    pair = _rows(logits), _rows(labels)
    if same_shapes(*pair) is not None:
        return f"logits and labels must be broadcastable: logits_size={dims(pair[0])} labels_size={dims(pair[1])}"
    if len(pair[0]) not in (len(pair[1]), *[len(pair[0])] * (len(pair[1]) == 1)):
        return f"Input to reshape is a tensor with {len(pair[1])} values, but the requested shape has {len(pair[0])}"
    return None


def _labels_fault(logits: Array, labels: Array) -> str | None:
    if labels.shape != logits.shape[:-1]:
        return f"logits and labels must have the same first dimension, got {dims(logits)} and {dims(labels)}"
    classes = logits.shape[-1]
    if labels.size == 0:
        return None
    if classes == 0:
        return f"Must have at least one class, but got logits shape {dims(logits)}"
    for worst in (labels.min(), labels.max()):
        if not 0 <= worst < classes:
            shown = " ".join(map(str, labels.reshape(-1)[:20])) + " ..." * (labels.size > 20)
            return (
                f"Received a label value of {worst} which is outside the valid range of [0, {classes}).  "
                f"Label values: {shown}"
            )
    return None


def _softmax_shape(c: Inference) -> list[Output]:
    return c.one(c.at_least(0, 1))


def _cross_entropy_shape(c: Inference) -> list[Output]:
    logits, labels = c.at_least(0, 1), c.at_least(1, 1)
    # Where one is not known, the losses have the shape of the other.
    dims = c.broadcast(logits if logits is not None else labels, labels if labels is not None else logits)
    return c.one(None if dims is None else dims[:-1])


def _sparse_shape(c: Inference) -> list[Output]:
    logits = c.at_least(0, 1)
    return c.one(c.merged(None if logits is None else logits[:-1], c.shape(1)))


_softmax_row = operation("Softmax", _softmax, shape=_softmax_shape, fault=_vector_fault)
_log_softmax_row = operation("LogSoftmax", _log_softmax, shape=_softmax_shape, fault=_vector_fault)
_cross_entropy_row = operation(
    "SoftmaxCrossEntropyWithLogits", _cross_entropy, shape=_cross_entropy_shape, fault=_pair_fault
)
_sparse_row = operation(
    "SparseSoftmaxCrossEntropyWithLogits",
    _sparse_cross_entropy,
    shape=_sparse_shape,
    fault=_labels_fault,
)


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
    order = _order(logits, axis)
    if order is None:
        return run(row, (logits,), name=name)  # type: ignore[no-any-return]
    known = isinstance(order, list)
    back = sorted(range(len(order)), key=order.__getitem__) if known else invert_permutation(order)
    return transpose(run(row, (transpose(logits, order),), name=name), back)


def _order(logits: EagerTensor, axis: Any, *, by_a_kernel: bool = False) -> Any:
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


def softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, axis: Any = -1, name: str | None = None
) -> EagerTensor:
    """The cross entropy between distributions and the softmax of logits, one along the axis.

    As ``tf.nn.softmax_cross_entropy_with_logits``.

    Args:
        labels: Distributions, each with the sum 1 along the axis.
        logits: Floats, as many rows of them.
        axis: The axis of the classes.
        name: Only looked at in error texts.

    Raises:
        InvalidArgumentError: The shapes do not fit.
        ValueError: Labels or logits are missing.
    """
    _check_given("softmax_cross_entropy_with_logits", labels, logits)
    logits = to_tensor(logits)
    labels = cast(to_tensor(labels, like=logits._dtype), logits._dtype)
    order = _order(logits, axis, by_a_kernel=True)
    if order is not None:
        logits, labels = transpose(logits, order), transpose(labels, order)
    return run(_cross_entropy_row, (logits, labels), name=name)  # type: ignore[no-any-return]


def sparse_softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, name: str | None = None
) -> EagerTensor:
    """The cross entropy between classes, given by number, and the softmax of logits.

    As ``tf.nn.sparse_softmax_cross_entropy_with_logits``.

    Args:
        labels: int32 or int64 numbers of classes.
        logits: Floats of the shape of the labels and one more axis, of the classes.
        name: Only looked at in error texts.

    Raises:
        InvalidArgumentError: There is no such class.
        ValueError: The shapes do not fit, or labels or logits are missing.
    """
    _check_given("sparse_softmax_cross_entropy_with_logits", labels, logits)
    labels, logits = to_tensor(labels), to_tensor(logits)
    wanted, found = logits.shape, labels.shape
    if wanted.rank == 0:
        raise ValueError(f"Logits cannot be scalars. Received logits={logits}.")
    if None not in (wanted.rank, found.rank) and found.rank != len(wanted) - 1:
        raise ValueError(
            "`labels` must have one axis less than `logits`: Rank mismatch: Rank of labels "
            f"(received {found.rank}) should equal rank of logits minus 1 (received {len(wanted) - 1})."
        )
    if wanted.is_fully_defined() and found.is_fully_defined() and found != wanted[:-1]:
        raise ValueError(
            "`labels.shape` must equal `logits.shape` except for the last dimension. Received: "
            f"labels.shape={found} and logits.shape={wanted}"
        )
    return run(_sparse_row, (logits, labels), name=name)  # type: ignore[no-any-return]


def weighted_cross_entropy_with_logits(
    labels: Any, logits: Any, pos_weight: Any, name: str | None = None
) -> EagerTensor:
    """``sigmoid_cross_entropy_with_logits`` where being true counts ``pos_weight`` times.

    As ``tf.nn.weighted_cross_entropy_with_logits``.

    Raises:
        ValueError: Labels and logits have different shapes.
    """
    labels, logits = to_tensor(labels), to_tensor(logits)
    _check_shapes(labels, logits)
    if not isinstance(pos_weight, int | float | Tensor):
        pos_weight = to_tensor(pos_weight, like=labels._dtype)
    # In TensorFlow's form, whose slope at zero is that of the sum of both sides' means.
    weight = 1 + (pos_weight - 1) * labels
    tail = add(log1p(exp(negative(absolute(logits)))), relu(negative(logits)))
    return add(multiply(1 - labels, logits), multiply(weight, tail), name)


def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> EagerTensor:
    """The cross entropy between probabilities and the sigmoid of logits, each element by itself.

    As ``tf.nn.sigmoid_cross_entropy_with_logits``.

    Raises:
        ValueError: The shapes differ, or labels or logits are missing.
    """
    _check_given("sigmoid_cross_entropy_with_logits", labels, logits)
    labels, logits = to_tensor(labels), to_tensor(logits)
    _check_shapes(labels, logits)
    # max(x, 0) - x * labels + log(1 + exp(-|x|)), in a form whose slope is right at zero, too.
    zeros = zeros_like(logits)
    positive = greater_equal(logits, zeros)
    above = where(positive, logits, zeros)
    below = where(positive, negative(logits), logits)
    return add(subtract(above, multiply(logits, labels)), log1p(exp(below)), name)


def _check_shapes(labels: EagerTensor, logits: EagerTensor) -> None:
    if not labels.shape.is_compatible_with(logits.shape):
        raise ValueError(
            f"`logits` and `labels` must have the same shape, received ({logits.shape} vs {labels.shape})."
        )


def _check_given(op: str, labels: Any, logits: Any) -> None:
    for what, value in (("labels", labels), ("logits", logits)):
        if value is None:
            raise ValueError(f"{op} needs {what}: both labels and logits must be provided")


__all__ = [
    "log_softmax",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
    "weighted_cross_entropy_with_logits",
]
