"""Optimizers with adaptive steps for each element: Adagrad, RMSProp and Adam."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.arithmetic import square
from allotment.tf.ops.math.real import rsqrt, sqrt
from allotment.tf.tensors.dtype import float32
from allotment.tf.training.elements import AllElements
from allotment.tf.training.optimizer import Optimizer


class AdagradOptimizer(Optimizer):
    """Adagrad: divides each gradient by the root of the sum of its squares. As ``tf.compat.v1.train.AdagradOptimizer``.

    Args:
        learning_rate: A number, a tensor, or a function that returns one.
        initial_accumulator_value: Initial value of the sums of squares.
        use_locking: Has no effect.
        name: Prefix of the names of the operations in a graph.

    Raises:
        ValueError: ``initial_accumulator_value`` is not positive.
    """

    _slots: ClassVar = {"accumulator": "_first"}

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._first = initial_accumulator_value

    def _update(self, gradient: Any, variable: Any, elements: AllElements) -> list[Any]:
        slot = self.get_slot(variable, "accumulator")
        total = elements.read(slot) + square(gradient)
        step = self._number(self._learning_rate, variable.dtype) * gradient * rsqrt(total)
        return [elements.replace(slot, total), elements.subtract(variable, step)]


class RMSPropOptimizer(Optimizer):
    """RMSProp: divides each gradient by the root of a moving average of its squares.

    As ``tf.compat.v1.train.RMSPropOptimizer``.

    Args:
        learning_rate: A number, a tensor, or a function that returns one.
        decay: Decay factor of the moving averages.
        momentum: Factor of the last step in the next one.
        epsilon: Added to the mean square to avoid division by zero.
        use_locking: Has no effect.
        centered: Whether to divide by the root of the variance, the mean square minus the square of the mean.
        name: Prefix of the names of the operations in a graph.
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._decay = learning_rate, decay
        self._momentum, self._epsilon = momentum, epsilon
        self._centered = centered

    @property
    def _slots(self) -> Mapping[str, float | str]:  # type: ignore[override]
        return {"rms": 1.0} | ({"mg": 0.0} if self._centered else {}) | {"momentum": 0.0}

    def _update(self, gradient: Any, variable: Any, elements: AllElements) -> list[Any]:
        rate, decay, momentum, epsilon = (
            self._number(each, variable.dtype)
            for each in (self._learning_rate, self._decay, self._momentum, self._epsilon)
        )
        squares, last = self.get_slot(variable, "rms"), self.get_slot(variable, "momentum")
        mean_square = decay * elements.read(squares) + (1 - decay) * square(gradient)
        done, spread = [elements.replace(squares, mean_square)], mean_square
        if self._centered:
            means = self.get_slot(variable, "mg")
            mean = decay * elements.read(means) + (1 - decay) * gradient
            done.append(elements.replace(means, mean))
            spread = mean_square - square(mean)
        step = momentum * elements.read(last) + rate * gradient * rsqrt(spread + epsilon)
        return [
            *done,
            elements.replace(last, step),
            elements.subtract(variable, step),
        ]


class AdamOptimizer(Optimizer):
    """Adam: divides a moving average of the gradients by the root of a moving average of their squares.

    As ``tf.compat.v1.train.AdamOptimizer``.

    Args:
        learning_rate: A number, a tensor, or a function that returns one.
        beta1: Decay factor of the average of gradients.
        beta2: Decay factor of the average of squares.
        epsilon: Added to the root to avoid division by zero.
        use_locking: Has no effect.
        name: Prefix of the names of the operations in a graph.
    """

    # The means of all elements decay in each step.
    _updates_rows: ClassVar = False
    _slots: ClassVar = {"m": 0.0, "v": 0.0}

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._epsilon = learning_rate, epsilon
        self._betas: Final = (beta1, beta2)

    def _create_slots(self, variables: Sequence[Any]) -> None:
        self._powers()
        super()._create_slots(variables)

    def _powers(self) -> list[Any]:
        """Return the variables with the powers of both betas, whose exponent is the number of steps."""
        return [
            self._non_slot_variable(name, partial(self._number, beta, float32))
            for name, beta in zip(("beta1_power", "beta2_power"), self._betas, strict=True)
        ]

    def _update(self, gradient: Any, variable: Any, elements: AllElements) -> list[Any]:
        dtype = variable.dtype
        beta1, beta2 = (self._number(beta, dtype) for beta in self._betas)
        power1, power2 = (cast(to_tensor(each), dtype) for each in self._powers())
        means, squares = self.get_slot(variable, "m"), self.get_slot(variable, "v")
        mean = beta1 * elements.read(means) + (1 - beta1) * gradient
        mean_square = beta2 * elements.read(squares) + (1 - beta2) * square(gradient)
        # Corrects the bias of averages that start at zero.
        rate = self._number(self._learning_rate, dtype) * sqrt(1 - power2) / (1 - power1)
        step = rate * mean / (sqrt(mean_square) + self._number(self._epsilon, dtype))
        return [
            elements.replace(means, mean),
            elements.replace(squares, mean_square),
            elements.subtract(variable, step),
        ]

    def _finish(self) -> list[Any]:
        return [
            power.assign(power * self._number(beta, float32), read_value=False)
            for power, beta in zip(self._powers(), self._betas, strict=True)
        ]


__all__ = ["AdagradOptimizer", "AdamOptimizer", "RMSPropOptimizer"]
