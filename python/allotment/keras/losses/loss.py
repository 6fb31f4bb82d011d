"""Losses as objects: with a way in which values become one."""

import math
from collections.abc import Callable
from typing import Any, Final

from allotment.dtypes import as_dtype
from allotment.keras.absent import lacks
from allotment.keras.engine.names import snake_case
from allotment.keras.engine.precision import widened
from allotment.keras.losses.functions import (
    binary_crossentropy,
    categorical_crossentropy,
    huber,
    mean_absolute_error,
    mean_squared_error,
    same_rank,
    sparse_categorical_crossentropy,
)
from allotment.ops.array import cast
from allotment.ops.convert import to_tensor
from allotment.ops.layout import expand_dims
from allotment.ops.math import multiply
from allotment.ops.reduce import reduce_mean, reduce_sum
from allotment.tensor import EagerTensor

_REDUCTIONS: Final = ("sum_over_batch_size", "sum", "none", None)


@lacks(
    "get_config",
    "from_config",
)
class Loss:
    """How far predictions are from what they should be. As ``keras.losses.Loss``.

    A loss of your own computes in ``call(y_true, y_pred)``: a value for each sample.

    Args:
        name: The name, made from the class if not given.
        reduction: How values become one: ``"sum_over_batch_size"`` for their mean, ``"sum"``, or ``"none"``.
        dtype: The type that values are computed in; if not given the predictions', but at least float32.

    Raises:
        ValueError: Another reduction.
    """

    def __init__(
        self, name: str | None = None, reduction: str | None = "sum_over_batch_size", dtype: Any = None
    ) -> None:
        if reduction in ("mean", "mean_with_sample_weight"):
            raise NotImplementedError(
                f"reduction={reduction!r} is not offered; sum_over_batch_size, sum and none are"
            )
        if reduction not in _REDUCTIONS:
            raise ValueError(
                "Invalid value for argument `reduction`. Expected one of "
                f"{{'sum_over_batch_size', 'none', None, 'sum'}}. Received: reduction={reduction}"
            )
        self.name = snake_case(type(self).__name__) if name is None else name
        self.reduction = reduction
        self.dtype = None if dtype is None else as_dtype(dtype)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Compute a value for each sample."""
        raise NotImplementedError(f"Loss {type(self).__name__} does not have a `call()` method implemented.")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> EagerTensor:
        """Compute the loss of a batch."""
        values = self.weighted(y_true, y_pred, sample_weight)
        if self.reduction == "sum_over_batch_size":
            return reduce_mean(values)
        return reduce_sum(values) if self.reduction == "sum" else values

    def weighted(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> EagerTensor:
        """Compute a value for each sample, each times its weight."""
        if self.dtype is not None:
            y_pred = cast(to_tensor(y_pred), self.dtype)
        else:
            y_true, y_pred = (None if each is None else widened(each) for each in (y_true, y_pred))
        if sample_weight is not None and y_true is not None:
            y_true, y_pred = one_by_one(y_true, y_pred)
        values = widened(self.call(y_true, y_pred))
        return values if sample_weight is None else multiply(values, spread(sample_weight, values))

    def part(self, y_true: Any, y_pred: Any, sample_weight: Any, samples: int) -> EagerTensor:
        """Compute what some samples add to the loss of a batch with ``samples`` of them.

        The parts of a batch, however it is divided, add up to the loss of all of it.

        Raises:
            ValueError: Values are not to be made one.
        """
        values = self.weighted(y_true, y_pred, sample_weight)
        if self.reduction == "sum":
            return reduce_sum(values)
        if self.reduction != "sum_over_batch_size":
            raise ValueError(
                f"a loss to train with is one number: {self.name!r} has reduction={self.reduction!r}"
            )
        own = len(to_tensor(y_pred))
        if values.ndim == 0:
            # A loss of the user's own that has made them one already.
            return multiply(values, own / samples)
        return multiply(reduce_sum(values), 1 / (samples * math.prod(values._array.shape[1:])))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def one_by_one(y_true: Any, y_pred: Any) -> tuple[EagerTensor, EagerTensor]:
    """Both with an axis behind the samples, so that a mean over the last axis leaves a value for each of them."""
    true, predicted = to_tensor(y_true), to_tensor(y_pred)
    if true.ndim == predicted.ndim == 1:
        return expand_dims(true, -1), expand_dims(predicted, -1)
    return true, predicted


def spread(sample_weight: Any, values: EagerTensor) -> EagerTensor:
    """Weights of samples in the type of values and with as many axes."""
    weights = cast(to_tensor(sample_weight, like=values._dtype), values._dtype)
    weights, _ = same_rank(weights, values)
    while weights.ndim < values.ndim:
        weights = expand_dims(weights, -1)
    return weights


class FunctionLoss(Loss):
    """A loss made of a function of ``y_true`` and ``y_pred``, with further arguments for it."""

    def __init__(
        self,
        function: Callable[..., Any],
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
        **arguments: Any,
    ) -> None:
        super().__init__(getattr(function, "__name__", None) if name is None else name, reduction, dtype)
        self._function, self._arguments = function, arguments

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Compute a value for each sample."""
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

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "binary_crossentropy",
        dtype: Any = None,
    ) -> None:
        arguments = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(binary_crossentropy, reduction, name, dtype, **arguments)


class CategoricalCrossentropy(FunctionLoss):
    """``categorical_crossentropy`` as an object."""

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "categorical_crossentropy",
        dtype: Any = None,
    ) -> None:
        arguments = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(categorical_crossentropy, reduction, name, dtype, **arguments)


class SparseCategoricalCrossentropy(FunctionLoss):
    """``sparse_categorical_crossentropy`` as an object."""

    def __init__(
        self,
        from_logits: bool = False,
        ignore_class: int | None = None,
        reduction: str | None = "sum_over_batch_size",
        axis: int = -1,
        name: str | None = "sparse_categorical_crossentropy",
        dtype: Any = None,
    ) -> None:
        arguments = {"from_logits": from_logits, "ignore_class": ignore_class, "axis": axis}
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
    "one_by_one",
    "spread",
]
