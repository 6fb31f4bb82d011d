"""How far predictions are from what they should be. As ``keras.losses``, those that are offered."""

from typing import Any, Final

from allotment.tf.keras.absent import not_interpreted
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
from allotment.tf.keras.losses.reduction import Reduction
from allotment.tf.names.missing_names import module_getattr

mae = MAE = mean_absolute_error
mse = MSE = mean_squared_error

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
    "mae": mae,
    "MAE": mae,
    "mse": mse,
    "MSE": mse,
}


def get(identifier: Any) -> Any:
    """The loss of a name, or what was passed if that can be called. As ``keras.losses.get``.

    Raises:
        ValueError: No such loss.
    """
    if identifier is None:
        return None
    if isinstance(identifier, str) and identifier in _BY_NAME:
        found = _BY_NAME[identifier]
        return found() if isinstance(found, type) else found
    if isinstance(identifier, type) and issubclass(identifier, Loss):
        return identifier()
    if callable(identifier):
        return identifier
    raise not_interpreted("loss", identifier, _BY_NAME)


def is_offered(loss: Any) -> bool:
    """Whether a loss is one of Keras' own functions or of their classes."""
    return loss in _FUNCTIONS or type(loss) in _CLASSES


def depends_on_shapes(identifier: Any) -> bool:
    """Whether a name means one of three losses, by the shapes of labels and predictions."""
    return isinstance(identifier, str) and identifier.lower() in ("crossentropy", "ce")


def for_shapes(identifier: Any, true: Any, predicted: Any) -> Loss:
    """The loss of a name, a function or an object, as an object for labels and predictions.

    Raises:
        ValueError: No such loss.
    """
    if not depends_on_shapes(identifier):
        return as_object(identifier)
    chosen = by_shapes(
        true, predicted, binary_crossentropy, sparse_categorical_crossentropy, categorical_crossentropy
    )
    return FunctionLoss(chosen, name=identifier)


def by_shapes(true: Any, predicted: Any, binary: Any, sparse: Any, categorical: Any) -> Any:
    """Choose by the number of outputs, and by whether labels are numbers of classes or distributions over them."""
    labels, outputs = true.shape, predicted.shape
    if outputs[-1] == 1:
        return binary
    return sparse if len(labels) < len(outputs) or labels[-1] == 1 else categorical


def as_object(identifier: Any) -> Loss:
    """The loss of a name, a function or an object, as an object.

    Raises:
        ValueError: No such loss.
    """
    found = get(identifier)
    if isinstance(found, Loss):
        return found
    return FunctionLoss(found, name=identifier if isinstance(identifier, str) else object_name(found))


__all__ = [
    "MAE",
    "MSE",
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "Huber",
    "Loss",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Reduction",
    "SparseCategoricalCrossentropy",
    "binary_crossentropy",
    "categorical_crossentropy",
    "get",
    "huber",
    "mae",
    "mean_absolute_error",
    "mean_squared_error",
    "mse",
    "sparse_categorical_crossentropy",
]

__getattr__ = module_getattr(__name__, __all__)
