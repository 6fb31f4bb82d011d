"""Losses as functions of labels and predictions: a value for each sample, or for each step of it."""

from typing import Any, Final

from allotment.tf.keras.absent import refuse_unless_none
from allotment.tf.keras.engine.precision import converted
from allotment.tf.keras.losses.logits import logits_behind
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.array.layout import expand_dims, squeeze
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.math.arithmetic import abs as absolute
from allotment.tf.ops.math.arithmetic import add, clip_by_value, multiply, negative, square, subtract
from allotment.tf.ops.math.comparison import less_equal
from allotment.tf.ops.math.division import divide
from allotment.tf.ops.math.real import log
from allotment.tf.ops.nn.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from allotment.tf.ops.reduction.reduce import reduce_mean, reduce_sum
from allotment.tf.tensors.dtype import float16, float32, int64
from allotment.tf.tensors.tensor import EagerTensor

#: Probabilities are clipped to this and to 1 minus this before logarithms.
EPSILON: Final = 1e-7


def convert_pair(y_true: Any, y_pred: Any) -> tuple[EagerTensor, EagerTensor]:
    """Convert labels to the type of the predictions, and remove an extra axis of length 1."""
    predicted = to_tensor(y_pred)
    return same_rank(converted(y_true, predicted._dtype), predicted)


def same_rank(true: EagerTensor, predicted: EagerTensor) -> tuple[EagerTensor, EagerTensor]:
    """Make the ranks of two tensors equal if one has an extra last axis of length 1."""
    more = true._array.ndim - predicted._array.ndim
    if more == 1 and true._array.shape[-1] == 1:
        return (true, expand_dims(predicted, -1)) if predicted.ndim == 1 else (squeeze(true, -1), predicted)
    if more == -1 and predicted._array.shape[-1] == 1:
        return (expand_dims(true, -1), predicted) if true.ndim == 1 else (true, squeeze(predicted, -1))
    return true, predicted


def mean(values: EagerTensor, axis: Any) -> EagerTensor:
    """Return the mean along axes: in float32 for integers, summed in float32 for float16."""
    dtype = values._dtype
    if dtype.is_floating and dtype is not float16:
        return reduce_mean(values, axis)
    found = reduce_mean(cast(values, float32), axis)
    return cast(found, float16) if dtype is float16 else found


def mean_squared_error(y_true: Any, y_pred: Any) -> EagerTensor:
    """Return the mean of squared differences over the last axis."""
    true, predicted = convert_pair(y_true, y_pred)
    return mean(square(subtract(true, predicted)), -1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> EagerTensor:
    """Return the mean of absolute differences over the last axis."""
    true, predicted = convert_pair(y_true, y_pred)
    return mean(_absolute(subtract(true, predicted)), -1)


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> EagerTensor:
    """Return the mean over the last axis of half the squared difference, which is linear from ``delta`` on."""
    true, predicted = convert_pair(y_true, y_pred)
    error = subtract(predicted, true)
    bend, half = (_in_type_of(error, value) for value in (delta, 0.5))
    size = _absolute(error)
    curved = multiply(half, square(error))
    straight = subtract(multiply(bend, size), multiply(half, square(bend)))
    return mean(where(less_equal(size, bend), curved, straight), -1)


def _in_type_of(tensor: EagerTensor, number: float) -> EagerTensor:
    """Convert a number to the type of a tensor; to an integer by truncation, as Keras does."""
    dtype = tensor._dtype
    return constant(number, dtype) if dtype.is_floating else cast(constant(float(number), float32), dtype)


def _absolute(values: EagerTensor) -> EagerTensor:
    return values if values._dtype.is_unsigned or values._dtype.is_bool else absolute(values)


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> EagerTensor:
    """Return the cross entropy of probabilities of two classes, or of their logits: the mean over an axis.

    Raises:
        ValueError: Labels and predictions have different shapes.
    """
    predicted = to_tensor(y_pred)
    true = cast(y_true, predicted._dtype)
    if label_smoothing:
        true = true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    _check_shapes("binary_crossentropy", true, predicted)
    predicted, from_logits = logits_behind(predicted, from_logits, "Sigmoid", "binary_crossentropy")
    if from_logits:
        return mean(sigmoid_cross_entropy_with_logits(true, predicted), axis)
    likely = _clipped(predicted)
    right = multiply(true, log(likely))
    wrong = multiply(1 - true, log(1 - likely))
    return mean(negative(add(right, wrong)), axis)


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> EagerTensor:
    """Return the cross entropy between distributions over classes, the predicted one as probabilities or logits.

    Raises:
        ValueError: Labels and predictions have different shapes.
    """
    predicted = to_tensor(y_pred)
    true = cast(y_true, predicted._dtype)
    if predicted.ndim == 0:
        # Keras reads the number of classes before it checks shapes.
        raise IndexError("categorical_crossentropy: predictions have no axis of classes: their shape is ()")
    if label_smoothing:
        true = add(multiply(true, 1.0 - label_smoothing), label_smoothing / max(true._array.shape[-1], 1))
    _check_shapes("categorical_crossentropy", true, predicted)
    predicted, from_logits = logits_behind(predicted, from_logits, "Softmax", "categorical_crossentropy")
    if from_logits:
        return softmax_cross_entropy_with_logits(true, predicted, axis)
    shares = divide(predicted, reduce_sum(predicted, axis, keepdims=True))
    return negative(reduce_sum(multiply(true, log(_clipped(shares))), axis))


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, ignore_class: None = None, axis: int = -1
) -> EagerTensor:
    """Return the cross entropy between classes, given by number, and predicted probabilities or logits.

    Raises:
        NotImplementedError: ``ignore_class`` is given.
        ValueError: The shapes do not match, or ``axis`` is not the last one.
    """
    refuse_unless_none("sparse_categorical_crossentropy", ignore_class=ignore_class)
    true, predicted = to_tensor(y_true), to_tensor(y_pred)
    if true.ndim == predicted.ndim and true._array.shape[axis] == 1:
        true = squeeze(true, axis)
    if axis not in (-1, predicted.ndim - 1):
        raise ValueError(f"Only axis=-1 is currently supported. Received: axis={axis}")
    predicted, from_logits = logits_behind(
        predicted, from_logits, "Softmax", "sparse_categorical_crossentropy", of_captured=True
    )
    true = cast(true, int64)
    if true.ndim == predicted.ndim and true.ndim and true._array.shape[-1] == 1:
        true = squeeze(true, -1)
    if true._array.shape != predicted._array.shape[:-1] or not predicted.ndim:
        raise ValueError(
            "sparse_categorical_crossentropy: labels have the shape of the predictions without its last axis, that of "
            f"the classes. Received: labels of shape {true._array.shape}, predictions of shape {predicted._array.shape}"
        )
    # Logarithms of probabilities are valid logits.
    logits = predicted if from_logits else log(_clipped(predicted))
    return sparse_softmax_cross_entropy_with_logits(true, logits)


def _check_shapes(loss: str, true: EagerTensor, predicted: EagerTensor) -> None:
    if true._array.shape != predicted._array.shape:
        raise ValueError(
            f"{loss}: labels and predictions must have the same shape. Received: labels of shape {true._array.shape}, "
            f"predictions of shape {predicted._array.shape}"
        )


def _clipped(probabilities: EagerTensor) -> EagerTensor:
    return clip_by_value(probabilities, EPSILON, 1.0 - EPSILON)


__all__ = [
    "binary_crossentropy",
    "categorical_crossentropy",
    "convert_pair",
    "huber",
    "mean",
    "mean_absolute_error",
    "mean_squared_error",
    "same_rank",
    "sparse_categorical_crossentropy",
]
