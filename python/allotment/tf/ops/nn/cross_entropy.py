"""Cross entropies of labels and logits."""

import math
from typing import Any

import numpy as np

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.array.layout import transpose
from allotment.tf.ops.arrays import Array, in_single
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.math.arithmetic import abs as absolute
from allotment.tf.ops.math.arithmetic import add, multiply, negative, subtract
from allotment.tf.ops.math.comparison import greater_equal
from allotment.tf.ops.math.real import exp, log1p
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.nn.activations import relu
from allotment.tf.ops.nn.softmax import below_zero, log_sum, order_with_last, vector_fault
from allotment.tf.ops.table import dims, operation, same_shapes
from allotment.tf.tensors.tensor import EagerTensor, Tensor


@in_single
def _cross_entropy(logits: Array, labels: Array) -> Any:
    # Logits and labels broadcast to each other; the result has as many rows as the logits.
    rows = _rows(logits), _rows(labels)
    shifted = np.broadcast_to(below_zero(rows[0]), np.broadcast_shapes(*(each.shape for each in rows)))
    losses = np.subtract(log_sum(shifted)[..., None], shifted)
    np.multiply(losses, rows[1], out=losses)
    return np.sum(losses, -1).reshape(logits.shape[:-1])


def _rows(array: Array) -> Array:
    """An array with its last axis and one other."""
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


@in_single
def _sparse_cross_entropy(logits: Array, labels: Array) -> Any:
    shifted = below_zero(logits)
    losses = log_sum(shifted)
    picked = np.take_along_axis(shifted, labels[..., None].astype(np.intp, copy=False), -1)
    return np.subtract(losses, picked[..., 0], out=losses)


def _pair_fault(logits: Array, labels: Array) -> str | None:
    for array in (logits, labels):
        fault = vector_fault(array)
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


def _cross_entropy_shape(c: Inference) -> list[Output]:
    logits, labels = c.at_least(0, 1), c.at_least(1, 1)
    # Where one is not known, the losses have the shape of the other.
    dims = c.broadcast(logits if logits is not None else labels, labels if labels is not None else logits)
    return c.one(None if dims is None else dims[:-1])


def _sparse_shape(c: Inference) -> list[Output]:
    logits = c.at_least(0, 1)
    return c.one(c.merged(None if logits is None else logits[:-1], c.shape(1)))


_cross_entropy_row = operation(
    "SoftmaxCrossEntropyWithLogits", _cross_entropy, shape=_cross_entropy_shape, fault=_pair_fault
)


_sparse_row = operation(
    "SparseSoftmaxCrossEntropyWithLogits",
    _sparse_cross_entropy,
    shape=_sparse_shape,
    fault=_labels_fault,
)


@in_name_scope("softmax_cross_entropy_with_logits", "Reshape_2")
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
    order = order_with_last(logits, axis, by_a_kernel=True)
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


@in_name_scope("logistic_loss")
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


@in_name_scope("logistic_loss")
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
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
    "weighted_cross_entropy_with_logits",
]
