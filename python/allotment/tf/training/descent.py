"""Optimizers with one learning rate for all elements: gradient descent, without and with momentum."""

from typing import Any, ClassVar

from allotment.tf.training.elements import AllElements
from allotment.tf.training.optimizer import Optimizer


class GradientDescentOptimizer(Optimizer):
    """Gradient descent: subtracts the gradient times a rate. As ``tf.compat.v1.train.GradientDescentOptimizer``.

    Args:
        learning_rate: A number, a tensor, or a function that returns one.
        use_locking: Has no effect.
        name: Prefix of the names of the operations in a graph.
    """

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _update(self, gradient: Any, variable: Any, elements: AllElements) -> list[Any]:
        rate = self._number(self._learning_rate, variable.dtype)
        return [elements.subtract(variable, rate * gradient)]


class MomentumOptimizer(Optimizer):
    """Momentum: subtracts a decaying sum of gradients times a rate. As ``tf.compat.v1.train.MomentumOptimizer``.

    Args:
        learning_rate: A number, a tensor, or a function that returns one.
        momentum: Decay factor of the sum.
        use_locking: Has no effect.
        name: Prefix of the names of the operations in a graph.
        use_nesterov: Whether to use Nesterov's variant.
    """

    _slots: ClassVar = {"momentum": 0.0}

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _update(self, gradient: Any, variable: Any, elements: AllElements) -> list[Any]:
        rate = self._number(self._learning_rate, variable.dtype)
        momentum = self._number(self._momentum, variable.dtype)
        slot = self.get_slot(variable, "momentum")
        total = momentum * elements.read(slot) + gradient
        step = gradient + momentum * total if self._use_nesterov else total
        return [
            elements.replace(slot, total),
            elements.subtract(variable, rate * step),
        ]


__all__ = ["GradientDescentOptimizer", "MomentumOptimizer"]
