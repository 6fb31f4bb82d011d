"""Metrics that are means of a function of what should be and what is predicted."""

from typing import Any

from allotment.dtypes import float32
from allotment.keras.losses.functions import (
    binary_crossentropy,
    categorical_crossentropy,
    mean_absolute_error,
    mean_squared_error,
    sparse_categorical_crossentropy,
)
from allotment.keras.metrics.functions import (
    accuracy,
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
)
from allotment.keras.metrics.metric import MeanMetricWrapper
from allotment.ops.creation import constant
from allotment.tensor import EagerTensor


class Accuracy(MeanMetricWrapper):
    """The mean of ``accuracy`` over batches. As ``keras.metrics.Accuracy``."""

    def __init__(self, name: str | None = "accuracy", dtype: Any = None) -> None:
        super().__init__(accuracy, name, dtype)


class BinaryAccuracy(MeanMetricWrapper):
    """The mean of ``binary_accuracy`` over batches. As ``keras.metrics.BinaryAccuracy``."""

    def __init__(
        self, name: str | None = "binary_accuracy", dtype: Any = None, threshold: float = 0.5
    ) -> None:
        super().__init__(binary_accuracy, name, dtype, threshold=threshold)


class CategoricalAccuracy(MeanMetricWrapper):
    """The mean of ``categorical_accuracy`` over batches. As ``keras.metrics.CategoricalAccuracy``."""

    def __init__(self, name: str | None = "categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(categorical_accuracy, name, dtype)


class SparseCategoricalAccuracy(MeanMetricWrapper):
    """The mean of ``sparse_categorical_accuracy`` over batches. As ``keras.metrics.SparseCategoricalAccuracy``."""

    def __init__(self, name: str | None = "sparse_categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(sparse_categorical_accuracy, name, dtype)


class BinaryCrossentropy(MeanMetricWrapper):
    """The mean of ``binary_crossentropy`` over batches. As ``keras.metrics.BinaryCrossentropy``."""

    def __init__(
        self,
        name: str | None = "binary_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            binary_crossentropy, name, dtype, from_logits=from_logits, label_smoothing=label_smoothing
        )


class CategoricalCrossentropy(MeanMetricWrapper):
    """The mean of ``categorical_crossentropy`` over batches. As ``keras.metrics.CategoricalCrossentropy``."""

    def __init__(
        self,
        name: str | None = "categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            categorical_crossentropy, name, dtype, from_logits=from_logits, label_smoothing=label_smoothing
        )


class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """The mean of ``sparse_categorical_crossentropy`` over batches.

    As ``keras.metrics.SparseCategoricalCrossentropy``.
    """

    def __init__(
        self,
        name: str | None = "sparse_categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
    ) -> None:
        super().__init__(sparse_categorical_crossentropy, name, dtype, from_logits=from_logits)


class MeanSquaredError(MeanMetricWrapper):
    """The mean of ``mean_squared_error`` over batches. As ``keras.metrics.MeanSquaredError``."""

    def __init__(self, name: str | None = "mean_squared_error", dtype: Any = None) -> None:
        super().__init__(mean_squared_error, name, dtype)


class MeanAbsoluteError(MeanMetricWrapper):
    """The mean of ``mean_absolute_error`` over batches. As ``keras.metrics.MeanAbsoluteError``."""

    def __init__(self, name: str | None = "mean_absolute_error", dtype: Any = None) -> None:
        super().__init__(mean_absolute_error, name, dtype)


class RootMeanSquaredError(MeanMetricWrapper):
    """The root of the mean of squared differences. As ``keras.metrics.RootMeanSquaredError``."""

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(mean_squared_error, name, dtype)

    def result(self) -> EagerTensor:
        """Return the root."""
        return constant(self._mean() ** 0.5, self.dtype or float32)


__all__ = [
    "Accuracy",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "RootMeanSquaredError",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
]
