"""Losses by name, and the choice of a loss by the shapes of labels and predictions."""

from typing import Any, Final

from allotment.tf.keras.absent import look_up
from allotment.tf.keras.engine.names import object_name
from allotment.tf.keras.losses.functions import (
    binary_crossentropy,
    categorical_crossentropy,
    huber,
    mean_absolute_error,
    mean_squared_error,
    sparse_categorical_crossentropy,
)
from allotment.tf.keras.losses.loss import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    FunctionLoss,
    Huber,
    Loss,
    MeanAbsoluteError,
    MeanSquaredError,
    SparseCategoricalCrossentropy,
)

_FUNCTIONS: Final = (
    binary_crossentropy,
    categorical_crossentropy,
    huber,
    mean_absolute_error,
    mean_squared_error,
    sparse_categorical_crossentropy,
)
_CLASSES: Final = (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    Huber,
    MeanAbsoluteError,
    MeanSquaredError,
    SparseCategoricalCrossentropy,
)
_BY_NAME: Final[dict[str, Any]] = {
    **{function.__name__: function for function in _FUNCTIONS},
    **{made.__name__: made for made in _CLASSES},
    "bce": binary_crossentropy,
    "BCE": binary_crossentropy,
    "mae": mean_absolute_error,
    "MAE": mean_absolute_error,
    "mse": mean_squared_error,
    "MSE": mean_squared_error,
}


def get(identifier: Any) -> Any:
    """Return the loss of a name; other functions are returned as they are. As ``keras.losses.get``.

    Raises:
        ValueError: Unknown.
    """
    return None if identifier is None else look_up("loss", identifier, _BY_NAME, Loss)


def is_offered(loss: Any) -> bool:
    """Whether a loss is a function or class of Keras."""
    return loss in _FUNCTIONS or type(loss) in _CLASSES


def depends_on_shapes(identifier: Any) -> bool:
    """Whether a name stands for several losses, of which the shapes of labels and predictions choose one."""
    return isinstance(identifier, str) and identifier.lower() in ("crossentropy", "ce")


def for_shapes(identifier: Any, true: Any, predicted: Any) -> Loss:
    """Return the loss of a name, a function or an object as an object, for labels and predictions.

    Raises:
        ValueError: Unknown.
    """
    if not depends_on_shapes(identifier):
        return as_object(identifier)
    chosen = by_shapes(
        true, predicted, binary_crossentropy, sparse_categorical_crossentropy, categorical_crossentropy
    )
    return FunctionLoss(chosen, name=identifier)


def by_shapes(true: Any, predicted: Any, binary: Any, sparse: Any, categorical: Any) -> Any:
    """Choose by the number of outputs, and by whether labels are class numbers or distributions."""
    labels, outputs = true.shape, predicted.shape
    if outputs[-1] == 1:
        return binary
    return sparse if len(labels) < len(outputs) or labels[-1] == 1 else categorical


def as_object(identifier: Any) -> Loss:
    """Return the loss of a name, a function or an object as an object.

    Raises:
        ValueError: Unknown.
    """
    found = get(identifier)
    if isinstance(found, Loss):
        return found
    return FunctionLoss(found, name=identifier if isinstance(identifier, str) else object_name(found))


__all__ = ["as_object", "by_shapes", "depends_on_shapes", "for_shapes", "get", "is_offered"]
