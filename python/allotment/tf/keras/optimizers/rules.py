"""The optimizers: each is an update of ``ops.variables.updates`` and the slot variables that it needs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from allotment.tf.keras.optimizers.learning_rate import single
from allotment.tf.keras.optimizers.optimizer import Optimizer
from allotment.tf.ops.variables import updates
from allotment.tf.ops.variables.slice_updates import apply
from allotment.tf.variables.variable import Variable


class SGD(Optimizer):
    """Gradient descent, optionally with momentum. As ``keras.optimizers.SGD``.

    Args:
        learning_rate: See ``Optimizer``.
        momentum: The factor of the previous step in the next one.
        nesterov: Whether to use Nesterov momentum.
        name: The name.
        **kwargs: Arguments of ``Optimizer``.

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

    def _slot_specs(self) -> Sequence[tuple[str, float]]:
        return (("momentum", 0.0),) if self.momentum else ()

    def update_step(self, gradient: Any, variable: Variable, learning_rate: float) -> None:
        """Update one variable by its gradient."""
        if self.momentum:
            kept = self._slots[id(variable)]
            apply(
                updates.MOMENTUM,
                variable,
                gradient,
                kept,
                learning_rate,
                single(self.momentum),
                self.nesterov,
            )
        else:
            apply(updates.DESCENT, variable, gradient, (), learning_rate)


class Adam(Optimizer):
    """Adam: steps by the mean of gradients over the root of the mean of their squares. As ``keras.optimizers.Adam``.

    Args:
        learning_rate: See ``Optimizer``.
        beta_1: The decay rate of the mean of gradients.
        beta_2: The decay rate of the mean of their squares.
        epsilon: A number added to the root.
        amsgrad: Whether to use the largest mean of squares so far.
        name: The name.
        **kwargs: Arguments of ``Optimizer``.
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

    def _slot_specs(self) -> Sequence[tuple[str, float]]:
        slots = (("momentum", 0.0), ("velocity", 0.0), ("velocity_hat", 0.0))
        return slots if self.amsgrad else slots[:2]

    def update_step(self, gradient: Any, variable: Variable, learning_rate: float) -> None:
        """Update one variable by its gradient."""
        # Corrects the bias of means that start at zero, in the precision of the variable, as Keras does.
        number = variable.dtype.as_numpy_dtype
        step = number(self._step // self._steps_per_update)
        first, second = (number(1) - number(single(beta)) ** step for beta in (self.beta_1, self.beta_2))
        rate = number(learning_rate) * np.sqrt(second) / first
        row = updates.ADAM_WITH_LARGEST if self.amsgrad else updates.ADAM
        kept = self._slots[id(variable)]
        apply(row, variable, gradient, kept, rate, self.beta_1, self.beta_2, self.epsilon)


class RMSprop(Optimizer):
    """RMSprop: gradients over the root of the mean of their squares. As ``keras.optimizers.RMSprop``.

    Args:
        learning_rate: See ``Optimizer``.
        rho: The decay rate of the mean of squares.
        momentum: The factor of the previous step in the next one.
        epsilon: A number added to the mean of squares.
        centered: Whether to subtract the square of the mean.
        name: The name.
        **kwargs: Arguments of ``Optimizer``.
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

    def _slot_specs(self) -> Sequence[tuple[str, float]]:
        slots = [("velocity", 0.0)]
        if self.centered:
            slots.append(("average_gradient", 0.0))
        if self.momentum:
            slots.append(("momentum", 0.0))
        return slots

    def update_step(self, gradient: Any, variable: Variable, learning_rate: float) -> None:
        """Update one variable by its gradient."""
        numbers = learning_rate, self.rho, self.momentum, self.epsilon, self.centered
        apply(updates.RMS_PROP, variable, gradient, self._slots[id(variable)], *numbers)


class Adagrad(Optimizer):
    """Adagrad: gradients over the root of the sum of their squares. As ``keras.optimizers.Adagrad``.

    Args:
        learning_rate: See ``Optimizer``.
        initial_accumulator_value: The initial sum of squares.
        epsilon: A number added to the sum.
        name: The name.
        **kwargs: Arguments of ``Optimizer``.
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

    def _slot_specs(self) -> Sequence[tuple[str, float]]:
        return (("accumulator", self.initial_accumulator_value),)

    def update_step(self, gradient: Any, variable: Variable, learning_rate: float) -> None:
        """Update one variable by its gradient."""
        kept = self._slots[id(variable)]
        apply(updates.ADAGRAD, variable, gradient, kept, learning_rate, self.epsilon)


__all__ = ["SGD", "Adagrad", "Adam", "RMSprop"]
