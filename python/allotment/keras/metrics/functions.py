"""Metrics as functions: of what should be and what is predicted, a value for each sample or step of it."""

from typing import Any

from allotment.dtypes import float32, int64
from allotment.keras.losses.functions import same_rank, together
from allotment.ops.array import cast
from allotment.ops.comparison import equal, greater
from allotment.ops.convert import to_tensor
from allotment.ops.extremes import argmax
from allotment.ops.layout import squeeze
from allotment.ops.reduce import reduce_mean
from allotment.tensor import EagerTensor


def accuracy(y_true: Any, y_pred: Any) -> EagerTensor:
    """Where predictions are what they should be: the share over the last axis."""
    true, predicted = together(y_true, y_pred)
    return _shares(equal(true, predicted))


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> EagerTensor:
    """Where the likelier of two classes is the right one: the share over the last axis."""
    true, predicted = together(y_true, y_pred)
    return _shares(equal(true, cast(greater(predicted, threshold), predicted._dtype)))


def _shares(right: EagerTensor) -> EagerTensor:
    return reduce_mean(cast(right, float32), -1)


def categorical_accuracy(y_true: Any, y_pred: Any) -> EagerTensor:
    """Where the likeliest class is the right one, which is the largest of ``y_true``."""
    true, predicted = same_rank(to_tensor(y_true), to_tensor(y_pred))
    return cast(equal(argmax(true, -1), argmax(predicted, -1)), float32)


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> EagerTensor:
    """Where the likeliest class is the right one, which is given by number."""
    true, predicted = to_tensor(y_true), to_tensor(y_pred)
    if true.ndim == predicted.ndim and true._array.shape[-1] == 1:
        true = squeeze(true, -1)
    return cast(equal(cast(true, int64), argmax(predicted, -1)), float32)


__all__ = ["accuracy", "binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy"]
