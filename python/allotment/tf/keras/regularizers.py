"""Regularizers: losses for large variables. As ``keras.regularizers``."""

import math
from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np

from allotment.tf.keras.absent import look_up
from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.arithmetic import abs as absolute
from allotment.tf.ops.math.arithmetic import add, multiply, square
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.tensors.tensor import EagerTensor


class Regularizer:
    """The base class of functions of a variable that return a loss. As ``keras.regularizers.Regularizer``."""

    #: The names of its arguments, which are attributes.
    _fields: ClassVar[tuple[str, ...]] = ()

    def __call__(self, x: Any) -> Any:  # noqa: ARG002 - subclasses use it
        """Compute the loss."""
        return 0.0

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of an equal regularizer."""
        return {name: getattr(self, name) for name in self._fields}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Regularizer":
        """Make a regularizer from its arguments."""
        return cls(**config)


class L1L2(Regularizer):
    """Sums of absolute values and of squares, each by a factor. As ``keras.regularizers.L1L2``.

    Args:
        l1: The factor of the absolute values.
        l2: The factor of the squares.

    Raises:
        ValueError: A factor is no non-negative number.
    """

    _fields: ClassVar[tuple[str, ...]] = ("l1", "l2")

    def __init__(self, l1: Any = 0.0, l2: Any = 0.0) -> None:
        self.l1, self.l2 = _factor(0.0 if l1 is None else l1, "l1"), _factor(0.0 if l2 is None else l2, "l2")

    def __call__(self, x: Any) -> EagerTensor:
        """Compute the loss."""
        tensor = to_tensor(x)
        loss = cast(to_tensor(0.0), tensor.dtype)
        # Keras converts factors to single precision first, whatever the type of the variable.
        if self.l1:
            loss = add(loss, multiply(reduce_sum(absolute(tensor)), float(np.float32(self.l1))))
        if self.l2:
            loss = add(loss, multiply(reduce_sum(square(tensor)), float(np.float32(self.l2))))
        return loss


class L1(L1L2):
    """The sum of absolute values, by a factor. As ``keras.regularizers.L1``.

    Args:
        l1: The factor.

    Raises:
        ValueError: It is no non-negative number.
    """

    _fields = ("l1",)

    def __init__(self, l1: Any = 0.01) -> None:
        super().__init__(l1=0.01 if l1 is None else l1)
        # Keras keeps this one as a tensor.
        self.l1 = float(np.float32(self.l1))


class L2(L1L2):
    """The sum of squares, by a factor. As ``keras.regularizers.L2``.

    Args:
        l2: The factor.

    Raises:
        ValueError: It is no non-negative number.
    """

    _fields = ("l2",)

    def __init__(self, l2: Any = 0.01) -> None:
        super().__init__(l2=0.01 if l2 is None else l2)


l1, l2, l1_l2 = L1, L2, L1L2

_BY_NAME: Final[dict[str, Callable[[], Regularizer]]] = {"l1": L1, "l1_l2": L1L2, "l2": L2}
_BY_ANY_NAME: Final = {**_BY_NAME, "L1": L1, "L1L2": L1L2, "L2": L2, "l1l2": L1L2}


def get(identifier: Any) -> Any:
    """Return the regularizer of a name; other functions are returned as they are. As ``keras.regularizers.get``.

    Raises:
        ValueError: Unknown.
    """
    if isinstance(identifier, dict) and identifier.get("class_name") in _BY_ANY_NAME:
        return _BY_ANY_NAME[identifier["class_name"]](**identifier.get("config", {}))
    return (
        None
        if identifier is None
        else look_up("regularizer", identifier, _BY_ANY_NAME, Regularizer, _BY_NAME)
    )


def _factor(value: Any, name: str) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(
            f"Invalid value for argument {name}: expected a non-negative float. Received: {name}={value}"
        )
    return float(value)


__all__ = ["L1", "L1L2", "L2", "Regularizer", "get", "l1", "l1_l2", "l2"]

refuse_other_names(__name__)
