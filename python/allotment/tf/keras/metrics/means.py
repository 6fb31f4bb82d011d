"""Metrics that are means of a function of labels and predictions."""

from typing import Any, ClassVar

from allotment.tf.keras.absent import refuse_unless_none
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


class _MeanOf(MeanMetricWrapper):
    """The base of means of functions of labels and predictions that have no further arguments."""

    function: "ClassVar[staticmethod[[Any, Any], EagerTensor]]"

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(self.function, name or self.function.__name__, dtype)


class Accuracy(_MeanOf):
    """The mean of ``accuracy`` over batches. As ``keras.metrics.Accuracy``."""

    direction = 1
    function = staticmethod(accuracy)


class CategoricalAccuracy(_MeanOf):
    """The mean of ``categorical_accuracy`` over batches. As ``keras.metrics.CategoricalAccuracy``."""

    direction = 1
    function = staticmethod(categorical_accuracy)


class SparseCategoricalAccuracy(_MeanOf):
    """The mean of ``sparse_categorical_accuracy`` over batches. As ``keras.metrics.SparseCategoricalAccuracy``."""

    direction = 1
    function = staticmethod(sparse_categorical_accuracy)


class MeanSquaredError(_MeanOf):
    """The mean of ``mean_squared_error`` over batches. As ``keras.metrics.MeanSquaredError``."""

    direction = -1
    function = staticmethod(mean_squared_error)


class MeanAbsoluteError(_MeanOf):
    """The mean of ``mean_absolute_error`` over batches. As ``keras.metrics.MeanAbsoluteError``."""

    direction = -1
    function = staticmethod(mean_absolute_error)


class BinaryAccuracy(MeanMetricWrapper):
    """The mean of ``binary_accuracy`` over batches. As ``keras.metrics.BinaryAccuracy``."""

    direction = 1

    def __init__(
        self, name: str | None = "binary_accuracy", dtype: Any = None, threshold: float = 0.5
    ) -> None:
        super().__init__(binary_accuracy, name, dtype, threshold=threshold)


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
        ignore_class: None = None,
        axis: int = -1,
    ) -> None:
        refuse_unless_none("SparseCategoricalCrossentropy", ignore_class=ignore_class)
        arguments = {"from_logits": from_logits, "ignore_class": None, "axis": axis}
        super().__init__(sparse_categorical_crossentropy, name, dtype, **arguments)


class RootMeanSquaredError(Mean):
    """The root of the mean of squared differences. As ``keras.metrics.RootMeanSquaredError``."""

    direction = -1

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(  # type: ignore[override]  # as in Keras: other arguments
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> None:
        """Update the state with a batch."""
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
