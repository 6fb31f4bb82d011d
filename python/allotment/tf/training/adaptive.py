"""Steps whose length follows from the gradients so far, element by element."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.arithmetic import square
from allotment.tf.ops.math.real import rsqrt, sqrt
from allotment.tf.tensors.dtype import float32
from allotment.tf.training.optimizer import Optimizer


class AdagradOptimizer(Optimizer):
    """Divides by the root of the sum of all squares so far. As ``tf.compat.v1.train.AdagradOptimizer``.

    Args:
        learning_rate: The rate; see ``GradientDescentOptimizer``.
        initial_accumulator_value: What the sums start with.
        use_locking: Has no effect.
        name: In front of the names of what it records.

    Raises:
        ValueError: The sums would not start above zero.
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

    def _changed(self, gradient: Any, variable: Any) -> list[Any]:
        slot = self.get_slot(variable, "accumulator")
        total = slot + square(gradient)
        step = self._number(self._learning_rate, variable.dtype) * gradient * rsqrt(total)
        return [slot.assign(total, read_value=False), variable.assign_sub(step, read_value=False)]


class RMSPropOptimizer(Optimizer):
    """Divides by the root of a mean of squares that fades. As ``tf.compat.v1.train.RMSPropOptimizer``.

    Args:
        learning_rate: The rate; see ``GradientDescentOptimizer``.
        decay: What is left of the means at each step.
        momentum: What is left of the last step.
        epsilon: Added to the mean, against a division by zero.
        use_locking: Has no effect.
        centered: Take off the square of the mean gradient, for a variance.
        name: In front of the names of what it records.
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

    def _changed(self, gradient: Any, variable: Any) -> list[Any]:
        rate, decay, momentum, epsilon = (
            self._number(each, variable.dtype)
            for each in (self._learning_rate, self._decay, self._momentum, self._epsilon)
        )
        squares, last = self.get_slot(variable, "rms"), self.get_slot(variable, "momentum")
        mean_square = decay * squares + (1 - decay) * square(gradient)
        done, spread = [squares.assign(mean_square, read_value=False)], mean_square
        if self._centered:
            means = self.get_slot(variable, "mg")
            mean = decay * means + (1 - decay) * gradient
            done.append(means.assign(mean, read_value=False))
            spread = mean_square - square(mean)
        step = momentum * last + rate * gradient * rsqrt(spread + epsilon)
        return [
            *done,
            last.assign(step, read_value=False),
            variable.assign_sub(step, read_value=False),
        ]


class AdamOptimizer(Optimizer):
    """Divides a fading mean by the root of one of squares. As ``tf.compat.v1.train.AdamOptimizer``.

    Args:
        learning_rate: The rate; see ``GradientDescentOptimizer``.
        beta1: What is left of the mean of gradients at each step.
        beta2: What is left of the mean of squares.
        epsilon: Added to the root, against a division by zero.
        use_locking: Has no effect.
        name: In front of the names of what it records.
    """

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

    def _make_slots(self, variables: Sequence[Any]) -> None:
        self._powers()
        super()._make_slots(variables)

    def _powers(self) -> list[Any]:
        """What is left of the first gradient in each of the two means: variables."""
        return [
            self._other(name, partial(self._number, beta, float32))
            for name, beta in zip(("beta1_power", "beta2_power"), self._betas, strict=True)
        ]

    def _changed(self, gradient: Any, variable: Any) -> list[Any]:
        dtype = variable.dtype
        beta1, beta2 = (self._number(beta, dtype) for beta in self._betas)
        power1, power2 = (cast(to_tensor(each), dtype) for each in self._powers())
        means, squares = self.get_slot(variable, "m"), self.get_slot(variable, "v")
        mean = beta1 * means + (1 - beta1) * gradient
        mean_square = beta2 * squares + (1 - beta2) * square(gradient)
        # Means that start with zero are too small at first.
        rate = self._number(self._learning_rate, dtype) * sqrt(1 - power2) / (1 - power1)
        step = rate * mean / (sqrt(mean_square) + self._number(self._epsilon, dtype))
        return [
            means.assign(mean, read_value=False),
            squares.assign(mean_square, read_value=False),
            variable.assign_sub(step, read_value=False),
        ]

    def _finished(self) -> list[Any]:
        return [
            power.assign(power * self._number(beta, float32), read_value=False)
            for power, beta in zip(self._powers(), self._betas, strict=True)
        ]


__all__ = ["AdagradOptimizer", "AdamOptimizer", "RMSPropOptimizer"]
