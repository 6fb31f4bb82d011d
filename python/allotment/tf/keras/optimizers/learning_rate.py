"""The learning rate of an optimizer: a number on the host that can be read and assigned like a variable."""

from typing import Any, Protocol

import numpy as np

from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.operators import OPERATORS, attach
from allotment.tf.tensors.dtype import float32
from allotment.tf.tensors.tensor import EagerTensor, Operands


class RateOwner(Protocol):
    """The part of an optimizer that ``LearningRate`` reads and sets."""

    name: str
    #: A number, or a function that returns one.
    _rate: Any


class LearningRate(Operands):
    """The learning rate of an optimizer, used as a tensor."""

    def __init__(self, optimizer: RateOwner) -> None:
        self._optimizer = optimizer

    def numpy(self) -> Any:
        """Return the number."""
        return np.float32(float(self))

    def assign(self, value: Any) -> "LearningRate":
        """Replace the number."""
        self._optimizer._rate = rate_argument(value)
        return self

    def _as_tensor(self) -> EagerTensor:
        """Return the tensor that operations compute with."""
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
    """Convert a learning rate: a number, rounded to single precision, or a function that returns one.

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
    """Convert the learning rate of a new optimizer: a float or a function, and no other number, as in Keras.

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
