"""Metrics that are means of a function of labels and predictions."""

from typing import Any

from allotment.tf.keras.engine.precision import converted
from allotment.tf.keras.losses.functions import (
    binary_crossentropy,
    categorical_crossentropy,
    mean_absolute_error,
    mean_squared_error,
    same_rank,
    sparse_categorical_crossentropy,
)
from allotment.tf.keras.metrics.functions import (
    accuracy,
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
)
from allotment.tf.keras.metrics.metric import Mean, MeanMetricWrapper
from allotment.tf.ops.math.arithmetic import squared_difference
from allotment.tf.ops.math.real import sqrt
from allotment.tf.tensors.tensor import EagerTensor


class Accuracy(MeanMetricWrapper):
    """The mean of ``accuracy`` over batches. As ``keras.metrics.Accuracy``."""

    direction = 1

    def __init__(self, name: str | None = "accuracy", dtype: Any = None) -> None:
        super().__init__(accuracy, name, dtype)


class BinaryAccuracy(MeanMetricWrapper):
    """The mean of ``binary_accuracy`` over batches. As ``keras.metrics.BinaryAccuracy``."""

    direction = 1

    def __init__(
        self, name: str | None = "binary_accuracy", dtype: Any = None, threshold: float = 0.5
    ) -> None:
        super().__init__(binary_accuracy, name, dtype, threshold=threshold)


class CategoricalAccuracy(MeanMetricWrapper):
    """The mean of ``categorical_accuracy`` over batches. As ``keras.metrics.CategoricalAccuracy``."""

    direction = 1

    def __init__(self, name: str | None = "categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(categorical_accuracy, name, dtype)


class SparseCategoricalAccuracy(MeanMetricWrapper):
    """The mean of ``sparse_categorical_accuracy`` over batches. As ``keras.metrics.SparseCategoricalAccuracy``."""

    direction = 1

    def __init__(self, name: str | None = "sparse_categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(sparse_categorical_accuracy, name, dtype)


class BinaryCrossentropy(MeanMetricWrapper):
    """The mean of ``binary_crossentropy`` over batches. As ``keras.metrics.BinaryCrossentropy``."""

    direction = -1

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

    direction = -1

    def __init__(
        self,
        name: str | None = "categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
    ) -> None:
        arguments = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(categorical_crossentropy, name, dtype, **arguments)


class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """The mean of ``sparse_categorical_crossentropy`` over batches.

    As ``keras.metrics.SparseCategoricalCrossentropy``.
    """

    direction = -1

    def __init__(
        self,
        name: str | None = "sparse_categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        ignore_class: int | None = None,
        axis: int = -1,
    ) -> None:
        arguments = {"from_logits": from_logits, "ignore_class": ignore_class, "axis": axis}
        super().__init__(sparse_categorical_crossentropy, name, dtype, **arguments)


class MeanSquaredError(MeanMetricWrapper):
    """The mean of ``mean_squared_error`` over batches. As ``keras.metrics.MeanSquaredError``."""

    direction = -1

    def __init__(self, name: str | None = "mean_squared_error", dtype: Any = None) -> None:
        super().__init__(mean_squared_error, name, dtype)


class MeanAbsoluteError(MeanMetricWrapper):
    """The mean of ``mean_absolute_error`` over batches. As ``keras.metrics.MeanAbsoluteError``."""

    direction = -1

    def __init__(self, name: str | None = "mean_absolute_error", dtype: Any = None) -> None:
        super().__init__(mean_absolute_error, name, dtype)


class RootMeanSquaredError(Mean):
    """The root of the mean of squared differences. As ``keras.metrics.RootMeanSquaredError``."""

    direction = -1

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(  # type: ignore[override]  # as in Keras: a mean of something else than values
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> None:
        """Take in a batch."""
        true, predicted = same_rank(converted(y_true, self._dtype), converted(y_pred, self._dtype))
        super().update_state(squared_difference(true, predicted), sample_weight)

    def result(self) -> EagerTensor:
        """Return the root."""
        return sqrt(super().result())


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
