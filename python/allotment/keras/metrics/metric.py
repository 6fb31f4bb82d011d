"""What is measured over batches: sums, one for each replica, in the host's memory, and what is made of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from allotment.aggregation import VariableAggregation, VariableSynchronization
from allotment.dtypes import as_dtype, float32
from allotment.keras import initializers
from allotment.keras.absent import lacks
from allotment.keras.engine.names import snake_case, unique_name
from allotment.keras.engine.precision import widened
from allotment.keras.engine.replicas import PerReplicaNumber
from allotment.keras.losses.loss import one_by_one, spread
from allotment.ops.array import cast
from allotment.ops.creation import constant
from allotment.ops.math import multiply
from allotment.ops.reduce import reduce_sum
from allotment.ops.repetition import broadcast_to
from allotment.tensor import EagerTensor
from allotment.variable import Variable


@lacks(
    "get_config",
    "from_config",
)
class Metric:
    """Something that is measured over batches. As ``keras.metrics.Metric``.

    A metric of your own makes variables with ``add_weight``, adds to them in ``update_state``, and says in ``result``
    what they make. In the scope of a strategy each replica adds to its own copy; all are added up when they are read.

    Args:
        dtype: Of the result, float32 unless given.
        name: The name, made from the class if not given.
    """

    def __init__(self, dtype: Any = None, name: str | None = None) -> None:
        self.name = unique_name(snake_case(type(self).__name__)) if name is None else name
        self.dtype = dtype
        self._numbers: list[PerReplicaNumber] = []
        #: Variables, with what they start with.
        self._added: list[tuple[Variable, Any]] = []

    def add_variable(
        self, shape: Any = (), initializer: Any = None, dtype: Any = None, name: str | None = None
    ) -> Variable:
        """Make a variable for something that is added up.

        Args:
            shape: Its shape, a single number unless given.
            initializer: What makes its first value, or the name of that; zeros unless given.
            dtype: Its type, float32 unless given.
            name: The name, behind that of the metric.
        """
        make = initializers.get("zeros" if initializer is None else initializer)
        wanted = as_dtype(dtype or self.dtype or "float32")
        variable = Variable(
            lambda: make(tuple(shape), dtype=wanted),
            trainable=False,
            name=f"{self.name}/{name or 'variable'}",
            aggregation=VariableAggregation.SUM,
            synchronization=VariableSynchronization.ON_READ,
        )
        self._added.append((variable, np.array(variable.numpy())))
        return variable

    def add_weight(
        self, shape: Any = (), initializer: Any = None, dtype: Any = None, name: str | None = None
    ) -> Variable:
        """Make a variable; see ``add_variable``."""
        return self.add_variable(shape, initializer, dtype, name)

    @property
    def variables(self) -> list[Variable]:
        """What was made with ``add_weight``."""
        return [variable for variable, _ in self._added]

    def _number(self) -> PerReplicaNumber:
        """Make a number that starts at zero and that ``reset_state`` sets back to it. Cheaper than a variable."""
        number = PerReplicaNumber()
        self._numbers.append(number)
        return number

    def _all_numbers(self) -> list[PerReplicaNumber]:
        """Its numbers, and those of the metrics that it is made of."""
        return self._numbers

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Take in a batch."""
        raise NotImplementedError(
            f"Metric {type(self).__name__} does not have an `update_state()` method implemented."
        )

    def result(self) -> Any:
        """Return what was measured since the last reset."""
        raise NotImplementedError(
            f"Metric {type(self).__name__} does not have a `result()` method implemented."
        )

    def reset_state(self) -> None:
        """Forget all batches."""
        for number in self._numbers:
            number.reset()
        for variable, first in self._added:
            variable.assign(first)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Take in a batch, and return what was measured since the last reset."""
        self.update_state(*args, **kwargs)
        return self.result()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


class Sum(Metric):
    """The sum of values. As ``keras.metrics.Sum``."""

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self._total = self._number()

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Add values, each times its weight."""
        self._total.add(_weighed(values, sample_weight)[0])

    def result(self) -> EagerTensor:
        """Return the sum."""
        return constant(self._total.total(), self.dtype or float32)


class Mean(Metric):
    """The mean of values. As ``keras.metrics.Mean``."""

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self._total, self._count = self._number(), self._number()

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Take in values, each as often as its weight says."""
        total, count = _weighed(values, sample_weight)
        self.add(total, count)

    def add(self, total: float, count: float) -> None:
        """Take in a sum of so many values."""
        self._total.add(total)
        self._count.add(count)

    @property
    def is_used(self) -> bool:
        """Whether there are values."""
        return self._count.total() > 0

    def result(self) -> EagerTensor:
        """Return the mean, 0 of no values."""
        return constant(self._mean(), self.dtype or float32)

    def _mean(self) -> float:
        count = self._count.total()
        return self._total.total() / count if count else 0.0


def _weighed(values: Any, sample_weight: Any) -> tuple[float, float]:
    """The sum of values times weights, and the sum of the weights."""
    given = widened(values)
    if not given._dtype.is_floating:
        given = cast(given, float32)
    if sample_weight is None:
        return float(reduce_sum(given)), given._array.size
    weights = broadcast_to(spread(sample_weight, given), given._array.shape)
    return float(reduce_sum(multiply(given, weights))), float(reduce_sum(weights))


class MeanMetricWrapper(Mean):
    """The mean of a function of ``y_true`` and ``y_pred``. As ``keras.metrics.MeanMetricWrapper``."""

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **arguments: Any
    ) -> None:
        super().__init__(getattr(fn, "__name__", "mean") if name is None else name, dtype)
        self._function, self._arguments = fn, arguments

    def update_state(  # type: ignore[override]  # as in Keras: a mean of something else than values
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> None:
        """Take in a batch."""
        if sample_weight is not None:
            y_true, y_pred = one_by_one(y_true, y_pred)
        super().update_state(self._function(y_true, y_pred, **self._arguments), sample_weight)


__all__ = ["Mean", "MeanMetricWrapper", "Metric", "Sum"]
