"""Metrics by name, and the choice of a metric by the shapes of labels and predictions."""

from typing import Any, Final

from allotment.tf.keras.absent import look_up
from allotment.tf.keras.engine.names import object_name, snake_case
from allotment.tf.keras.losses.lookup import by_shapes, is_offered
from allotment.tf.keras.metrics.means import (
    Accuracy,
    BinaryAccuracy,
    BinaryCrossentropy,
    CategoricalAccuracy,
    CategoricalCrossentropy,
    MeanAbsoluteError,
    MeanSquaredError,
    RootMeanSquaredError,
    SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy,
)
from allotment.tf.keras.metrics.metric import Mean, MeanMetricWrapper, Metric, Sum

_CLASSES: Final = (
    Accuracy,
    BinaryAccuracy,
    BinaryCrossentropy,
    CategoricalAccuracy,
    CategoricalCrossentropy,
    Mean,
    MeanAbsoluteError,
    MeanSquaredError,
    RootMeanSquaredError,
    SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy,
    Sum,
)
_BY_NAME: Final[dict[str, type[Metric]]] = {
    **{made.__name__: made for made in _CLASSES},
    **{snake_case(made.__name__): made for made in _CLASSES},
    "bce": BinaryCrossentropy,
    "BCE": BinaryCrossentropy,
    "mae": MeanAbsoluteError,
    "MAE": MeanAbsoluteError,
    "mse": MeanSquaredError,
    "MSE": MeanSquaredError,
}


def get(identifier: Any) -> Any:
    """Return the metric of a name; other functions are returned as they are. As ``keras.metrics.get``.

    Raises:
        ValueError: Unknown.
    """
    return None if identifier is None else look_up("metric", identifier, _BY_NAME, Metric)


def depends_on_shapes(identifier: Any) -> bool:
    """Whether a name stands for several metrics, of which the shapes of labels and predictions choose one."""
    return isinstance(identifier, str) and identifier.lower() in ("accuracy", "acc")


def for_shapes(identifier: Any, true: Any, predicted: Any) -> Metric:
    """Return the metric of a name, a function or an object, for labels and predictions.

    Raises:
        ValueError: Unknown.
    """
    if depends_on_shapes(identifier):
        chosen = by_shapes(true, predicted, BinaryAccuracy, SparseCategoricalAccuracy, CategoricalAccuracy)
        return chosen(name=identifier)  # type: ignore[no-any-return]
    found = get(identifier)
    if found is None:
        raise ValueError("Expected metric, received `None`")
    if not isinstance(found, Metric):
        made = MeanMetricWrapper(found, object_name(found))
        made.direction = -1 if is_offered(found) else 0
        return made
    if isinstance(identifier, str):
        found.name = identifier
    return found


__all__ = ["depends_on_shapes", "for_shapes", "get"]
