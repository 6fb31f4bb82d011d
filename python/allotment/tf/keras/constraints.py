"""Constraints: projections of variables that optimizers apply after each update. As ``keras.constraints``."""

import inspect
from typing import Any, Final

from allotment.tf.keras.absent import look_up
from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.arithmetic import add, clip_by_value, maximum, multiply, square
from allotment.tf.ops.math.division import divide
from allotment.tf.ops.math.real import sqrt
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.tensors.tensor import EagerTensor

#: The number that Keras adds to norms.
_EPSILON: Final = 1e-7


class Constraint:
    """The base class of functions of a variable that return an allowed value. As ``keras.constraints.Constraint``."""

    def __call__(self, w: Any) -> Any:
        """Return the allowed value; here, the value itself."""
        return w

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of an equal constraint."""
        return {
            name: vars(self)[name] for name in inspect.signature(type(self)).parameters if name in vars(self)
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Constraint":
        """Make a constraint from its arguments."""
        return cls(**config)


class NonNeg(Constraint):
    """No element is below zero. As ``keras.constraints.NonNeg``."""

    def __call__(self, w: Any) -> EagerTensor:
        """Return the allowed value."""
        return maximum(to_tensor(w), 0)


class MaxNorm(Constraint):
    """Norms along axes have an upper bound. As ``keras.constraints.MaxNorm``.

    Args:
        max_value: The bound.
        axis: The axis of the norms, or several.
    """

    def __init__(self, max_value: Any = 2, axis: Any = 0) -> None:
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: Any) -> EagerTensor:
        """Return the allowed value."""
        norms = _norms(w, self.axis)
        return _scaled(w, norms, clip_by_value(norms, 0, self.max_value))


class MinMaxNorm(Constraint):
    """Norms along axes have bounds. As ``keras.constraints.MinMaxNorm``.

    Args:
        min_value: The lower bound.
        max_value: The upper bound.
        rate: The share of the way to the bounds that each update goes, 1 for all of it.
        axis: The axis of the norms, or several.
    """

    def __init__(self, min_value: Any = 0.0, max_value: Any = 1.0, rate: float = 1.0, axis: Any = 0) -> None:
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: Any) -> EagerTensor:
        """Return the allowed value."""
        norms = _norms(w, self.axis)
        bounded = clip_by_value(norms, self.min_value, self.max_value)
        return _scaled(w, norms, add(multiply(bounded, self.rate), multiply(norms, 1 - self.rate)))


class UnitNorm(Constraint):
    """Norms along axes are 1. As ``keras.constraints.UnitNorm``.

    Args:
        axis: The axis of the norms, or several.
    """

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> EagerTensor:
        """Return the allowed value."""
        return divide(to_tensor(w), add(_norms(w, self.axis), _EPSILON))


def _norms(w: Any, axis: Any) -> EagerTensor:
    return sqrt(reduce_sum(square(to_tensor(w)), axis, keepdims=True))


def _scaled(w: Any, norms: EagerTensor, wanted: EagerTensor) -> EagerTensor:
    # A norm of zero stays.
    return multiply(to_tensor(w), divide(wanted, add(norms, _EPSILON)))


max_norm, min_max_norm, non_neg, unit_norm = MaxNorm, MinMaxNorm, NonNeg, UnitNorm

_BY_NAME: Final[dict[str, type[Constraint]]] = {
    "max_norm": MaxNorm,
    "min_max_norm": MinMaxNorm,
    "non_neg": NonNeg,
    "unit_norm": UnitNorm,
}
_BY_ANY_NAME: Final = {
    **_BY_NAME,
    **{made.__name__: made for made in _BY_NAME.values()},
    "Constraint": Constraint,
    "constraint": Constraint,
}


def get(identifier: Any) -> Any:
    """Return the constraint of a name; other functions are returned as they are. As ``keras.constraints.get``.

    Raises:
        ValueError: Unknown.
    """
    if identifier is None:
        return None
    if isinstance(identifier, dict) and identifier.get("class_name") in _BY_ANY_NAME:
        return _BY_ANY_NAME[identifier["class_name"]](**identifier.get("config", {}))
    return look_up("constraint", identifier, _BY_ANY_NAME, Constraint, _BY_NAME)


__all__ = [
    "Constraint",
    "MaxNorm",
    "MinMaxNorm",
    "NonNeg",
    "UnitNorm",
    "get",
    "max_norm",
    "min_max_norm",
    "non_neg",
    "unit_norm",
]

refuse_other_names(__name__)
