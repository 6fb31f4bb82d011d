"""How optimizers change a variable: each is one row of ``ops.updates`` and what it keeps for a variable."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from allotment.tf.keras.optimizers.learning_rate import single
from allotment.tf.keras.optimizers.optimizer import Optimizer
from allotment.tf.ops.variables import updates
from allotment.tf.variables.variable import Variable


class SGD(Optimizer):
    """Go down the gradient, with momentum if asked to. As ``keras.optimizers.SGD``.

    Args:
        learning_rate: How far one step goes.
        momentum: How much of the last step is in the next one.
        nesterov: Whether the gradient is taken as if that had been made.
        name: The name.
        **kwargs: Those of every optimizer.

    Raises:
        ValueError: The momentum is no float between 0 and 1.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, name=name, **kwargs)
        if not isinstance(momentum, float) or not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be a float between [0, 1].")
        self.momentum, self.nesterov = momentum, nesterov

    def _slots(self) -> Sequence[tuple[str, float]]:
        return (("momentum", 0.0),) if self.momentum else ()

    def update_step(self, gradient: Any, variable: Variable, learning_rate: float) -> None:
        """Change one variable by its gradient."""
        if self.momentum:
            kept = self._kept[id(variable)]
            updates.apply(
                updates.MOMENTUM,
                variable,
                gradient,
                kept,
                learning_rate,
                single(self.momentum),
                self.nesterov,
            )
        else:
            updates.apply(updates.DESCENT, variable, gradient, (), learning_rate)


class Adam(Optimizer):
    """Steps by the mean of gradients over the root of that of their squares. As ``keras.optimizers.Adam``.

    Args:
        learning_rate: How far one step goes.
        beta_1: What is kept of the mean of gradients with each step.
        beta_2: What is kept of the mean of their squares.
        epsilon: Added to the root.
        amsgrad: Whether the largest mean of squares so far is taken, and not the latest.
        name: The name.
        **kwargs: Those of every optimizer.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, name=name, **kwargs)
        self.beta_1, self.beta_2, self.epsilon, self.amsgrad = beta_1, beta_2, epsilon, amsgrad

    def _slots(self) -> Sequence[tuple[str, float]]:
        slots = (("momentum", 0.0), ("velocity", 0.0), ("velocity_hat", 0.0))
        return slots if self.amsgrad else slots[:2]

    def update_step(self, gradient: Any, variable: Variable, learning_rate: float) -> None:
        """Change one variable by its gradient."""
        # Means that start at zero are too small at first. In the precision of the variable, as Keras computes it.
        number = variable.dtype.as_numpy_dtype
        step = number(self._step // self._steps_to_a_change)
        first, second = (number(1) - number(single(beta)) ** step for beta in (self.beta_1, self.beta_2))
        rate = number(learning_rate) * np.sqrt(second) / first
        row = updates.ADAM_WITH_LARGEST if self.amsgrad else updates.ADAM
        kept = self._kept[id(variable)]
        updates.apply(row, variable, gradient, kept, rate, self.beta_1, self.beta_2, self.epsilon)


class RMSprop(Optimizer):
    """Gradients over the root of the mean of their squares. As ``keras.optimizers.RMSprop``.

    Args:
        learning_rate: How far one step goes.
        rho: What is kept of the mean of squares with each step.
        momentum: How much of the last step is in the next one.
        epsilon: Added to the mean of squares.
        centered: Whether that is the variance, without the square of the mean.
        name: The name.
        **kwargs: Those of every optimizer.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, name=name, **kwargs)
        self.rho, self.momentum, self.epsilon, self.centered = rho, momentum, epsilon, centered

    def _slots(self) -> Sequence[tuple[str, float]]:
        slots = [("velocity", 0.0)]
        if self.centered:
            slots.append(("average_gradient", 0.0))
        if self.momentum:
            slots.append(("momentum", 0.0))
        return slots

    def update_step(self, gradient: Any, variable: Variable, learning_rate: float) -> None:
        """Change one variable by its gradient."""
        numbers = learning_rate, self.rho, self.momentum, self.epsilon, self.centered
        updates.apply(updates.RMS_PROP, variable, gradient, self._kept[id(variable)], *numbers)


class Adagrad(Optimizer):
    """Gradients over the root of the sum of their squares. As ``keras.optimizers.Adagrad``.

    Args:
        learning_rate: How far one step goes.
        initial_accumulator_value: What the sum of squares starts with.
        epsilon: Added to it.
        name: The name.
        **kwargs: Those of every optimizer.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, name=name, **kwargs)
        self.initial_accumulator_value, self.epsilon = initial_accumulator_value, epsilon

    def _slots(self) -> Sequence[tuple[str, float]]:
        return (("accumulator", self.initial_accumulator_value),)

    def update_step(self, gradient: Any, variable: Variable, learning_rate: float) -> None:
        """Change one variable by its gradient."""
        kept = self._kept[id(variable)]
        updates.apply(updates.ADAGRAD, variable, gradient, kept, learning_rate, self.epsilon)


__all__ = ["SGD", "Adagrad", "Adam", "RMSprop"]
