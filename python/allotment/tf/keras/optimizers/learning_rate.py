"""An optimizer's learning rate: a number of the host's, that can be read and set like a variable."""

from typing import TYPE_CHECKING, Any

import numpy as np

from allotment.tf.ops.array.creation import constant
from allotment.tf.ops.operators import OPERATORS, attach
from allotment.tf.tensors.dtype import float32
from allotment.tf.tensors.tensor import EagerTensor, Operands

if TYPE_CHECKING:
    from allotment.tf.keras.optimizers.optimizer import Optimizer


class LearningRate(Operands):
    """How far one step of an optimizer goes."""

    def __init__(self, optimizer: "Optimizer") -> None:
        self._optimizer = optimizer

    def numpy(self) -> Any:
        """Return the number."""
        return np.float32(float(self))

    def assign(self, value: Any) -> "LearningRate":
        """Replace the number."""
        self._optimizer._rate = rate_argument(value)
        return self

    def _as_tensor(self) -> EagerTensor:
        """What operations compute with."""
        return constant(float(self), float32)

    def __float__(self) -> float:
        return float(self._optimizer._rate)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.numpy(), dtype)

    def __format__(self, spec: str) -> str:
        return format(float(self), spec)

    def __repr__(self) -> str:
        return f"<learning rate of {self._optimizer.name}: {float(self):g}>"


attach(LearningRate, {name: method for name, method in OPERATORS.items() if name != "__getitem__"})


def single(value: Any) -> float:
    """Round a number to single precision, as Keras does before it casts it to the type of a variable."""
    return float(np.float32(value))


def rate_argument(value: Any) -> Any:
    """A learning rate: a number, rounded as one that is kept in single precision, or a function that gives one.

    Raises:
        ValueError: It is neither.
    """
    if callable(value):
        return value
    try:
        return single(value)
    except (TypeError, ValueError) as error:
        error.__traceback__ = None
        raise _no_rate(value) from None


def first_rate(value: Any) -> Any:
    """The learning rate that an optimizer is made with: a float or a function, and no other number, as in Keras.

    Raises:
        ValueError: It is neither.
    """
    if not (isinstance(value, float) or callable(value)):
        raise _no_rate(value)
    return rate_argument(value)


def _no_rate(value: Any) -> ValueError:
    return ValueError(
        "Argument `learning_rate` should be float, or an instance of LearningRateSchedule, or a callable (that takes "
        "in the current iteration value and returns the corresponding learning rate value). Received instead: "
        f"learning_rate={value}"
    )


__all__ = ["LearningRate", "first_rate", "rate_argument", "single"]
