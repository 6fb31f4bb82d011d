"""How well a model does, over all batches since the last reset. As ``keras.metrics``, those that are offered."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from allotment.dtypes import float32
from allotment.keras.absent import absent
from allotment.keras.engine.names import snake_case
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
from allotment.keras.metrics.metric import Mean, MeanMetricWrapper, Metric, Sum
from allotment.ops.creation import constant
from allotment.tensor import EagerTensor


def _wrapper(name: str, function: Callable[..., Any], default: str) -> type[MeanMetricWrapper]:
    """Make the class of a function; what else the function takes, the class takes, too."""

    def __init__(  # noqa: N807 - that of a class made here
        self: MeanMetricWrapper, name: str | None = default, dtype: Any = None, **arguments: Any
    ) -> None:
        MeanMetricWrapper.__init__(self, function, name, dtype, **arguments)

    doc = f"The mean of ``{function.__name__}`` over batches. As ``keras.metrics.{name}``."
    made = type(name, (MeanMetricWrapper,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})
    made.__qualname__ = name
    return made


Accuracy = _wrapper("Accuracy", accuracy, "accuracy")
BinaryAccuracy = _wrapper("BinaryAccuracy", binary_accuracy, "binary_accuracy")
CategoricalAccuracy = _wrapper("CategoricalAccuracy", categorical_accuracy, "categorical_accuracy")
SparseCategoricalAccuracy = _wrapper(
    "SparseCategoricalAccuracy", sparse_categorical_accuracy, "sparse_categorical_accuracy"
)
BinaryCrossentropy = _wrapper("BinaryCrossentropy", binary_crossentropy, "binary_crossentropy")
CategoricalCrossentropy = _wrapper(
    "CategoricalCrossentropy", categorical_crossentropy, "categorical_crossentropy"
)
SparseCategoricalCrossentropy = _wrapper(
    "SparseCategoricalCrossentropy", sparse_categorical_crossentropy, "sparse_categorical_crossentropy"
)
MeanSquaredError = _wrapper("MeanSquaredError", mean_squared_error, "mean_squared_error")
MeanAbsoluteError = _wrapper("MeanAbsoluteError", mean_absolute_error, "mean_absolute_error")


class RootMeanSquaredError(MeanMetricWrapper):
    """The root of the mean of squared differences. As ``keras.metrics.RootMeanSquaredError``."""

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(mean_squared_error, name, dtype)

    def result(self) -> EagerTensor:
        """Return the root."""
        return constant(self._mean() ** 0.5, self.dtype or float32)


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
    "mae": MeanAbsoluteError,
    "MAE": MeanAbsoluteError,
    "mse": MeanSquaredError,
    "MSE": MeanSquaredError,
    "rmse": RootMeanSquaredError,
    "RMSE": RootMeanSquaredError,
}

#: Names that mean one of three classes: by whether there is one output, or classes are given by number.
_BY_SHAPE: Final[dict[str, tuple[type[Metric], type[Metric], type[Metric]]]] = {
    **dict.fromkeys(
        ("accuracy", "acc", "Accuracy"), (BinaryAccuracy, SparseCategoricalAccuracy, CategoricalAccuracy)
    ),
    **dict.fromkeys(
        ("crossentropy", "ce"), (BinaryCrossentropy, SparseCategoricalCrossentropy, CategoricalCrossentropy)
    ),
}


def get(identifier: Any) -> Any:
    """The metric of a name, or what was passed if that can be called. As ``keras.metrics.get``.

    Raises:
        ValueError: No such metric.
    """
    if identifier is None:
        return None
    if isinstance(identifier, str) and identifier in _BY_NAME:
        return _BY_NAME[identifier]()
    if isinstance(identifier, type) and issubclass(identifier, Metric):
        return identifier()
    if callable(identifier):
        return identifier
    raise ValueError(f"Could not interpret metric identifier: {identifier}")


def as_object(identifier: Any, true: Sequence[Any], predicted: Sequence[Any]) -> Metric:
    """The metric of a name, a function or an object, for values of these shapes.

    Raises:
        ValueError: No such metric.
    """
    if isinstance(identifier, str) and identifier in _BY_SHAPE:
        binary, sparse, categorical = _BY_SHAPE[identifier]
        if predicted[-1] == 1:
            chosen = binary
        elif len(true) < len(predicted) or true[-1] == 1:
            chosen = sparse
        else:
            chosen = categorical
        return chosen(name=identifier)
    found = get(identifier)
    if not isinstance(found, Metric):
        return MeanMetricWrapper(found)
    if isinstance(identifier, str):
        found.name = identifier
    return found


__all__ = [
    "Accuracy",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "Mean",
    "MeanAbsoluteError",
    "MeanMetricWrapper",
    "MeanSquaredError",
    "Metric",
    "RootMeanSquaredError",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "Sum",
    "get",
]

__getattr__ = absent(__name__, __all__)
