"""Losses as objects: a function of labels and predictions, and a reduction of its values."""

from collections.abc import Callable
from typing import Any, Final

from allotment.tf import nest
from allotment.tf.keras.absent import refuse_unless_none
from allotment.tf.keras.engine.calls import calls
from allotment.tf.keras.engine.names import snake_case, unique_name
from allotment.tf.keras.engine.precision import converted
from allotment.tf.keras.engine.replicas import number_of_replicas
from allotment.tf.keras.losses.functions import (
    binary_crossentropy,
    categorical_crossentropy,
    huber,
    mean_absolute_error,
    mean_squared_error,
    same_rank,
    sparse_categorical_crossentropy,
)
from allotment.tf.names.absent_methods import lacks
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.array.shapes import size
from allotment.tf.ops.math.arithmetic import multiply
from allotment.tf.ops.math.division import divide_no_nan
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.tensor import EagerTensor

_MEANS: Final = ("sum_over_batch_size", "mean", "mean_with_sample_weight")
_REDUCTIONS: Final = (*_MEANS, "sum", "none", None)


@lacks(
    "get_config",
    "from_config",
)
class Loss:
    """The base class of losses. As ``keras.losses.Loss``.

    A subclass computes a value for each sample in ``call(y_true, y_pred)``.

    Args:
        name: The name, made from the class if not given.
        reduction: ``"sum_over_batch_size"`` or ``"mean"`` divides the sum of the values by their number,
            ``"mean_with_sample_weight"`` by the sum of the weights; ``"sum"``; ``"none"`` or ``None`` keeps them.
        dtype: The type that the loss computes in, float32 if not given.

    Raises:
        ValueError: Another reduction.
    """

    def __init__(
        self, name: str | None = None, reduction: str | None = "sum_over_batch_size", dtype: Any = None
    ) -> None:
        if reduction not in _REDUCTIONS:
            raise ValueError(
                "Invalid value for argument `reduction`. Expected one of "
                f"{', '.join(map(repr, _REDUCTIONS))}. Received: reduction={reduction}"
            )
        self.name = name or unique_name(snake_case(type(self).__name__))
        self.reduction = reduction
        self._dtype = as_dtype(dtype or "float32")

    @property
    def dtype(self) -> str:
        """The type that the loss computes in."""
        return self._dtype.name

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Compute a value for each sample."""
        raise NotImplementedError(f"Loss {type(self).__name__} does not have a `call()` method implemented.")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> EagerTensor:
        """Compute the loss of a batch.

        Under a strategy, a mean is divided by the number of replicas, so that the losses of all replicas add up.
        """
        found = self._of_batch(y_true, y_pred, sample_weight)
        count = number_of_replicas() if self.reduction in _MEANS else 1
        return found if count == 1 else multiply(found, 1 / count)

    def _of_batch(self, y_true: Any, y_pred: Any, sample_weight: Any) -> EagerTensor:
        return self._reduced(*self._weighted(y_true, y_pred, sample_weight))

    def _weighted(
        self, y_true: Any, y_pred: Any, sample_weight: Any
    ) -> tuple[EagerTensor, EagerTensor | None]:
        """Compute the values times their weights, and the weights, ``None`` if all are 1."""
        true, predicted = (_structure(each, self._dtype) for each in (y_true, y_pred))
        values = converted(self.call(true, predicted), self._dtype)
        weights = None if sample_weight is None else converted(sample_weight, self._dtype)
        if weights is not None:
            values, weights = same_rank(values, weights)
            values = multiply(values, weights)
        return values, weights

    def _reduced(self, values: EagerTensor, weights: EagerTensor | None) -> EagerTensor:
        if self.reduction in (None, "none") or not values.ndim or _is_empty(values):
            return values
        total = reduce_sum(values)
        if self.reduction == "sum":
            return total
        if self.reduction == "mean_with_sample_weight" and weights is not None:
            return divide_no_nan(total, reduce_sum(weights))
        if calls.tracing:
            return divide_no_nan(total, cast(size(values), self._dtype))
        return divide_no_nan(total, constant(values._array.size, self._dtype))

    def part(self, y_true: Any, y_pred: Any, sample_weight: Any, samples: int) -> EagerTensor:
        """Compute the part of some samples in the loss of a batch with ``samples`` samples.

        The parts of a batch add up to its loss, however the batch is divided.
        """
        found = self._of_batch(y_true, y_pred, sample_weight)
        own = len(nest.flatten(y_pred)[0])
        if own == samples or self.reduction in (None, "none"):
            return found
        if own == 0:
            # A scalar with gradients, like the parts of other replicas.
            return multiply(reduce_sum(found), 0.0)
        return multiply(found, own / samples) if self.reduction in _MEANS else found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def _is_empty(values: EagerTensor) -> bool:
    return not calls.tracing and values._array.shape == (0,)


def _structure(values: Any, dtype: Any) -> Any:
    """Convert labels or predictions, a dictionary entry by entry."""
    if isinstance(values, dict):
        return {key: _structure(each, dtype) for key, each in values.items()}
    return None if values is None else converted(values, dtype)


class FunctionLoss(Loss):
    """A loss of a function of ``y_true`` and ``y_pred``, with further arguments of the function."""

    def __init__(
        self,
        function: Callable[..., Any],
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
        **arguments: Any,
    ) -> None:
        super().__init__(name, reduction, dtype)
        self._function, self._arguments = function, arguments

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Compute a value for each sample."""
        if isinstance(y_true, EagerTensor) and isinstance(y_pred, EagerTensor):
            y_true, y_pred = same_rank(y_true, y_pred)
        return self._function(y_true, y_pred, **self._arguments)


class MeanSquaredError(FunctionLoss):
    """``mean_squared_error`` as an object."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "mean_squared_error",
        dtype: Any = None,
    ) -> None:
        super().__init__(mean_squared_error, reduction, name, dtype)


class MeanAbsoluteError(FunctionLoss):
    """``mean_absolute_error`` as an object."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "mean_absolute_error",
        dtype: Any = None,
    ) -> None:
        super().__init__(mean_absolute_error, reduction, name, dtype)


class Huber(FunctionLoss):
    """``huber`` as an object."""

    def __init__(
        self,
        delta: float = 1.0,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "huber_loss",
        dtype: Any = None,
    ) -> None:
        super().__init__(huber, reduction, name, dtype, delta=delta)


class BinaryCrossentropy(FunctionLoss):
    """``binary_crossentropy`` as an object."""

    _crossentropy = staticmethod(binary_crossentropy)

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        arguments = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        function = self._crossentropy
        super().__init__(function, reduction, name or function.__name__, dtype, **arguments)


class CategoricalCrossentropy(BinaryCrossentropy):
    """``categorical_crossentropy`` as an object."""

    _crossentropy = staticmethod(categorical_crossentropy)


class SparseCategoricalCrossentropy(FunctionLoss):
    """``sparse_categorical_crossentropy`` as an object."""

    def __init__(
        self,
        from_logits: bool = False,
        ignore_class: None = None,
        reduction: str | None = "sum_over_batch_size",
        axis: int = -1,
        name: str | None = "sparse_categorical_crossentropy",
        dtype: Any = None,
    ) -> None:
        refuse_unless_none("SparseCategoricalCrossentropy", ignore_class=ignore_class)
        arguments = {"from_logits": from_logits, "ignore_class": None, "axis": axis}
        super().__init__(sparse_categorical_crossentropy, reduction, name, dtype, **arguments)


__all__ = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "FunctionLoss",
    "Huber",
    "Loss",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "SparseCategoricalCrossentropy",
]
