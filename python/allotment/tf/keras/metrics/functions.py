"""Metrics as functions of labels and predictions: a value for each sample, or for each element of it."""

from typing import Any

from allotment.tf.keras.engine.precision import converted
from allotment.tf.keras.losses.functions import convert_pair, same_rank
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.layout import reshape, squeeze
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.extremes import argmax
from allotment.tf.ops.math.comparison import equal, greater
from allotment.tf.tensors.dtype import float32, float64
from allotment.tf.tensors.tensor import EagerTensor


def accuracy(y_true: Any, y_pred: Any) -> EagerTensor:
    """Return 1 for each prediction that equals its label, else 0."""
    return cast(equal(*convert_pair(y_true, y_pred)), float32)


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> EagerTensor:
    """Return 1 for each prediction that is on its label's side of the threshold, else 0."""
    true, predicted = same_rank(to_tensor(y_true), to_tensor(y_pred))
    if predicted._dtype is not float64:
        predicted = cast(predicted, float32)
    above = greater(predicted, threshold)
    return cast(equal(true, cast(above, true._dtype)), float32)


def categorical_accuracy(y_true: Any, y_pred: Any) -> EagerTensor:
    """Return 1 for each sample whose most probable class is that of its label, a distribution, else 0.

    Raises:
        ValueError: Labels have an axis more than predictions.
    """
    true, predicted = argmax(to_tensor(y_true), -1, "int32"), to_tensor(y_pred)
    if true.ndim == predicted.ndim == 0:
        # Keras reads the number of samples first.
        raise IndexError("categorical_accuracy: predictions have no axis of classes: their shape is ()")
    if true.ndim == predicted.ndim and true._array.shape[-1:] != (1,):
        raise ValueError(
            "categorical_accuracy: labels and predictions must have the same rank. Received: labels of rank "
            f"{true.ndim + 1}, predictions of shape {predicted._array.shape}"
        )
    # In the type of the predictions, as Keras compares them: classes of booleans are those that are 0 and the others.
    return _matches(cast(true, predicted._dtype), predicted)


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> EagerTensor:
    """Return 1 for each sample whose most probable class is its label, a class number, else 0."""
    predicted = to_tensor(y_pred)
    found = _matches(converted(y_true, predicted._dtype), predicted)
    shape = found._array.shape
    return squeeze(found, -1) if len(shape) > 1 and shape[-1] == 1 else found


def _matches(true: EagerTensor, predicted: EagerTensor) -> EagerTensor:
    shape = true._array.shape
    is_column = len(shape) == predicted.ndim and shape[-1:] == (1,)
    if is_column:
        true = squeeze(true, -1)
    found = cast(equal(true, cast(argmax(predicted, -1, "int32"), true._dtype)), float32)
    return reshape(found, shape) if is_column else found


__all__ = ["accuracy", "binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy"]
