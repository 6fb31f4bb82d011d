"""The base class of metrics, sums and means. Their state is a number for each replica in host memory."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from allotment.tf.keras import initializers
from allotment.tf.keras.engine.calls import calls
from allotment.tf.keras.engine.names import snake_case, unique_name
from allotment.tf.keras.engine.precision import converted
from allotment.tf.keras.engine.replicas import PerReplicaNumber
from allotment.tf.keras.engine.tracking import found_in, without_repeats
from allotment.tf.keras.losses.functions import mean, same_rank
from allotment.tf.keras.metrics.number_variable import NumberVariable
from allotment.tf.names.absent_methods import lacks
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.array.creation import zeros
from allotment.tf.ops.array.repetition import broadcast_to
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.arithmetic import multiply
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.tensors.dtype import DType, as_dtype
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.variables.aggregation import VariableAggregation, VariableSynchronization
from allotment.tf.variables.variable import Variable


@lacks(
    "get_config",
    "from_config",
)
class Metric:
    """The base class of metrics. As ``keras.metrics.Metric``.

    A subclass makes variables with ``add_weight``, updates them in ``update_state``, and computes the metric in
    ``result``. In the scope of a strategy, each replica updates its own copy, and reading sums all copies.

    Args:
        dtype: The type of the result, float32 if not given.
        name: The name, made from the class if not given.
    """

    _tracked_as: ClassVar = "metrics"
    #: 1 if the metric should rise in training, -1 if it should fall, 0 if that is not known.
    direction = 0

    def __init__(self, dtype: Any = None, name: str | None = None) -> None:
        self.name = name or unique_name(snake_case(type(self).__name__))
        self._dtype: DType = as_dtype(dtype or "float32")
        self._numbers: list[PerReplicaNumber] = []
        self._number_names: list[str] = []
        #: The numbers as variables, once a program has asked for them.
        self._number_variables: list[NumberVariable] = []
        #: The variables that ``add_weight`` made.
        self._added: list[Variable] = []

    @property
    def dtype(self) -> str:
        """The type of the result."""
        return self._dtype.name

    def add_variable(
        self, shape: Any = (), initializer: Any = None, dtype: Any = None, name: str | None = None
    ) -> Variable:
        """Make a variable that is summed over replicas.

        Args:
            shape: Its shape, a single number unless given.
            initializer: An initializer or its name; zeros unless given.
            dtype: Its type, float32 unless given.
            name: The name, which follows that of the metric.
        """
        make = initializers.get("zeros" if initializer is None else initializer)
        wanted = as_dtype(dtype or "float32")
        variable = Variable(
            lambda: make(tuple(shape), dtype=wanted),
            trainable=False,
            name=f"{self.name}/{name or 'variable'}",
            aggregation=VariableAggregation.SUM,
            synchronization=VariableSynchronization.ON_READ,
        )
        self._added.append(variable)
        return variable

    def add_weight(
        self, shape: Any = (), initializer: Any = None, dtype: Any = None, name: str | None = None
    ) -> Variable:
        """Make a variable; see ``add_variable``."""
        return self.add_variable(shape, initializer, dtype, name)

    @property
    def variables(self) -> list[Variable]:
        """The state as variables: the metric's own, and those of the metrics among its attributes."""
        if len(self._number_variables) < len(self._numbers):
            self._number_variables = [
                NumberVariable(number, self._dtype, f"{self.name}/{name}")
                for name, number in zip(self._number_names, self._numbers, strict=True)
            ]
        inner = (variable for metric in self._inner() for variable in metric.variables)
        return without_repeats(iter([*self._number_variables, *self._added, *inner]))

    def _inner(self) -> Iterator["Metric"]:
        """Yield the metrics among the attributes."""
        for each in found_in(self, Metric):
            if each is not self:
                yield each

    def _number(self, name: str) -> PerReplicaNumber:
        """Make a number that ``reset_state`` sets to zero; cheaper than a variable."""
        number = PerReplicaNumber()
        self._numbers.append(number)
        self._number_names.append(name)
        return number

    def _members(self) -> list["Metric"]:
        """Return the metrics that it combines, or itself."""
        return [self]

    def _all_numbers(self) -> list[PerReplicaNumber]:
        """Return its numbers, and those of the metrics that it combines."""
        return [*self._numbers, *(number for each in self._inner() for number in each._all_numbers())]

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Update the state with a batch."""
        raise NotImplementedError(
            f"Metric {type(self).__name__} does not have an `update_state()` method implemented."
        )

    def result(self) -> Any:
        """Return the value since the last reset."""
        raise NotImplementedError(
            f"Metric {type(self).__name__} does not have a `result()` method implemented."
        )

    def reset_state(self) -> None:
        """Reset the state."""
        for number in self._numbers:
            number.reset()
        for variable in self._added:
            variable.assign(zeros(variable.shape, variable.dtype))
        for metric in self._inner():
            metric.reset_state()

    def reset_states(self) -> None:
        """Reset the state: the name of ``reset_state`` before Keras 3, which guides still use."""
        self.reset_state()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Update the state with a batch, and return the value since the last reset."""
        self.update_state(*args, **kwargs)
        return self.result()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


class Sum(Metric):
    """The sum of values. As ``keras.metrics.Sum``."""

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self._total = self._number("total")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Add values, each times its weight."""
        if calls.tracing:
            return
        self._total.add(_weighted_sums(values, sample_weight, self._dtype, reduce_sum)[0])

    def result(self) -> EagerTensor:
        """Return the sum."""
        return constant(self._total.total(), self._dtype)


class Mean(Metric):
    """The mean of values. As ``keras.metrics.Mean``."""

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self._total, self._count = self._number("total"), self._number("count")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Add values with weights."""
        if calls.tracing:
            return
        self.add(*_weighted_sums(values, sample_weight, self._dtype, mean))

    def add(self, total: float, count: float) -> None:
        """Add the sum of ``count`` values."""
        self._total.add(total)
        self._count.add(count)

    @property
    def is_used(self) -> bool:
        """Whether there are values."""
        return self._count.total() > 0

    def result(self) -> EagerTensor:
        """Return the mean, or 0 if there are no values."""
        return constant(self._mean(), self._dtype)

    def _mean(self) -> float:
        count = self._count.total()
        return self._total.total() / count if count else 0.0


def _weighted_sums(
    given: Any, sample_weight: Any, dtype: DType, reduce: Callable[..., EagerTensor]
) -> tuple[float, float]:
    """Return the sum of samples' values times weights, and the sum of the weights.

    ``reduce`` reduces the values and the weights of a sample to one.
    """
    values = cast(given, dtype)
    if sample_weight is None:
        values = _of_samples(values, 1, reduce)
        return float(reduce_sum(values)), values._array.shape[0] if values.ndim else 1
    weights = converted(sample_weight, dtype)
    values, weights = same_rank(values, weights)
    values = _of_samples(values, weights.ndim, reduce)
    weights = broadcast_to(weights, values._array.shape)
    products = _of_samples(multiply(values, weights), 1, reduce)
    return float(reduce_sum(products)), float(reduce_sum(_of_samples(weights, 1, reduce)))


def _of_samples(values: EagerTensor, axes: int, reduce: Callable[..., EagerTensor]) -> EagerTensor:
    """Reduce all but the first axes."""
    return reduce(values, list(range(axes, values.ndim))) if values.ndim > axes else values


class MeanMetricWrapper(Mean):
    """The mean of a function of ``y_true`` and ``y_pred``. As ``keras.metrics.MeanMetricWrapper``."""

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **arguments: Any
    ) -> None:
        super().__init__(name, dtype)
        self._function, self._arguments = fn, arguments

    def update_state(  # type: ignore[override]  # as in Keras: other arguments
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> None:
        """Update the state with a batch."""
        values = to_tensor(self._function(y_true, y_pred, **self._arguments))
        super().update_state(values, sample_weight)


__all__ = ["Mean", "MeanMetricWrapper", "Metric", "Sum"]
