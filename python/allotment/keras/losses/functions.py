"""Losses as functions: of what should be and what is predicted, a value for each sample or step of it."""

from typing import Any, Final

from allotment.dtypes import float32, int64
from allotment.keras.engine.precision import widened
from allotment.ops.array import cast
from allotment.ops.comparison import less_equal
from allotment.ops.convert import to_tensor
from allotment.ops.division import divide
from allotment.ops.gathering import where
from allotment.ops.layout import expand_dims, squeeze
from allotment.ops.math import abs as absolute
from allotment.ops.math import add, maximum, minimum, multiply, negative, square, squared_difference, subtract
from allotment.ops.real import log
from allotment.ops.reduce import reduce_mean, reduce_sum
from allotment.ops.softmax import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from allotment.tensor import EagerTensor

#: What keeps a logarithm finite.
EPSILON: Final = 1e-7


def together(y_true: Any, y_pred: Any) -> tuple[EagerTensor, EagerTensor]:
    """What should be and what is predicted, in one type and with as many axes: one of length 1 is added or dropped."""
    predicted = widened(y_pred)
    if not predicted._dtype.is_floating:
        predicted = cast(predicted, float32)
    true = to_tensor(y_true)
    if true._dtype is not predicted._dtype:
        true = cast(true, predicted._dtype)
    return same_rank(true, predicted)


def same_rank(true: EagerTensor, predicted: EagerTensor) -> tuple[EagerTensor, EagerTensor]:
    """Both with as many axes, if the one more has length 1 and is the last."""
    more = true._array.ndim - predicted._array.ndim
    if more == 1 and true._array.shape[-1] == 1:
        return (true, expand_dims(predicted, -1)) if predicted.ndim == 1 else (squeeze(true, -1), predicted)
    if more == -1 and predicted._array.shape[-1] == 1:
        return (expand_dims(true, -1), predicted) if true.ndim == 1 else (true, squeeze(predicted, -1))
    return true, predicted


def mean_squared_error(y_true: Any, y_pred: Any) -> EagerTensor:
    """The mean of squared differences over the last axis."""
    true, predicted = together(y_true, y_pred)
    return reduce_mean(squared_difference(true, predicted), -1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> EagerTensor:
    """The mean of absolute differences over the last axis."""
    true, predicted = together(y_true, y_pred)
    return reduce_mean(absolute(subtract(true, predicted)), -1)


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> EagerTensor:
    """Half the squared difference, but a straight line from ``delta`` on; the mean over the last axis."""
    true, predicted = together(y_true, y_pred)
    error = absolute(subtract(true, predicted))
    curved = multiply(square(error), 0.5)
    straight = multiply(subtract(error, 0.5 * delta), delta)
    return reduce_mean(where(less_equal(error, delta), curved, straight), -1)


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> EagerTensor:
    """The cross entropy of probabilities of two classes, or of their logits; the mean over an axis.

    Raises:
        ValueError: Both have other shapes.
    """
    true, predicted = together(y_true, y_pred)
    _check_shapes("binary_crossentropy", true, predicted)
    if label_smoothing:
        true = add(multiply(true, 1.0 - label_smoothing), 0.5 * label_smoothing)
    if from_logits:
        return reduce_mean(sigmoid_cross_entropy_with_logits(true, predicted), axis)
    likely = _clipped(predicted)
    right = multiply(true, log(likely))
    wrong = multiply(subtract(1.0, true), log(subtract(1.0, likely)))
    return reduce_mean(negative(add(right, wrong)), axis)


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> EagerTensor:
    """The cross entropy between distributions over classes, the predicted one as probabilities or logits.

    Raises:
        ValueError: Both have other shapes.
    """
    true, predicted = together(y_true, y_pred)
    _check_shapes("categorical_crossentropy", true, predicted)
    if label_smoothing:
        classes = predicted._array.shape[axis]
        true = add(multiply(true, 1.0 - label_smoothing), label_smoothing / classes)
    if from_logits:
        return softmax_cross_entropy_with_logits(true, predicted, axis)
    shares = divide(predicted, reduce_sum(predicted, axis, keepdims=True))
    return negative(reduce_sum(multiply(true, log(_clipped(shares))), axis))


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, ignore_class: int | None = None, axis: int = -1
) -> EagerTensor:
    """The cross entropy between classes, given by number, and predicted probabilities or logits.

    Raises:
        ValueError: There are not as many classes as predictions.
        NotImplementedError: A class to ignore, or another axis than the last.
    """
    if ignore_class is not None or axis != -1:
        raise NotImplementedError(
            "sparse_categorical_crossentropy: `ignore_class` and other axes than the last are not offered"
        )
    predicted, true = widened(y_pred), to_tensor(y_true)
    true = true if true._dtype.is_integer else cast(true, int64)
    if true.ndim == predicted.ndim and true._array.shape[-1] == 1:
        true = squeeze(true, -1)
    if true._array.shape != predicted._array.shape[:-1]:
        raise ValueError(
            "Argument `output` must have rank (ndim) `target.ndim - 1`. "
            f"Received: target.shape={true.shape}, output.shape={predicted.shape}"
        )
    if from_logits:
        return sparse_softmax_cross_entropy_with_logits(true, predicted)
    # Logarithms of probabilities are logits, too.
    return sparse_softmax_cross_entropy_with_logits(true, log(_clipped(predicted)))


def _check_shapes(loss: str, true: EagerTensor, predicted: EagerTensor) -> None:
    if true._array.shape[1:] != predicted._array.shape[1:]:
        raise ValueError(
            f"{loss}: Arguments `target` and `output` must have the same shape. "
            f"Received: target.shape={true.shape}, output.shape={predicted.shape}"
        )


def _clipped(probabilities: EagerTensor) -> EagerTensor:
    return minimum(maximum(probabilities, EPSILON), 1.0 - EPSILON)


__all__ = [
    "binary_crossentropy",
    "categorical_crossentropy",
    "huber",
    "mean_absolute_error",
    "mean_squared_error",
    "same_rank",
    "sparse_categorical_crossentropy",
    "together",
]
