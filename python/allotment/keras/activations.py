"""Functions between layers. As ``keras.activations``."""

from collections.abc import Callable
from typing import Any, Final

from allotment.keras.absent import not_interpreted
from allotment.missing_names import absent
from allotment.ops.activations import elu, gelu, leaky_relu, relu6, selu, silu, softplus, softsign
from allotment.ops.activations import relu as _relu
from allotment.ops.convert import to_tensor
from allotment.ops.math import maximum, minimum, multiply
from allotment.ops.real import exp, sigmoid, tanh
from allotment.ops.softmax import log_softmax, softmax
from allotment.tensor import EagerTensor

Activation = Callable[..., EagerTensor]


def linear(x: Any) -> Any:
    """What it is given."""
    return x


def relu(x: Any, negative_slope: float = 0.0, max_value: float | None = None) -> EagerTensor:
    """The element, times ``negative_slope`` if below zero, and at most ``max_value``."""
    result = leaky_relu(x, negative_slope) if negative_slope else _relu(x)
    return result if max_value is None else minimum(result, max_value)


def exponential(x: Any) -> EagerTensor:
    """``exp(x)``."""
    return exp(x)


def hard_sigmoid(x: Any) -> EagerTensor:
    """A straight line through a half, cut at 0 and 1."""
    return minimum(maximum(to_tensor(x) / 6.0 + 0.5, 0.0), 1.0)


def mish(x: Any) -> EagerTensor:
    """``x * tanh(softplus(x))``."""
    given = to_tensor(x)
    return multiply(given, tanh(softplus(given)))


swish = silu

_BY_NAME: Final[dict[str, Activation]] = {
    "elu": elu,
    "exponential": exponential,
    "gelu": gelu,
    "hard_sigmoid": hard_sigmoid,
    "leaky_relu": leaky_relu,
    "linear": linear,
    "log_softmax": log_softmax,
    "mish": mish,
    "relu": relu,
    "relu6": relu6,
    "selu": selu,
    "sigmoid": sigmoid,
    "silu": silu,
    "softmax": softmax,
    "softplus": softplus,
    "softsign": softsign,
    "swish": swish,
    "tanh": tanh,
}


def get(identifier: Any) -> Activation:
    """The function of a name, or what was passed if that can be called; ``linear`` for ``None``.

    Raises:
        ValueError: No such function.
    """
    if identifier is None:
        return linear
    if isinstance(identifier, str) and identifier in _BY_NAME:
        return _BY_NAME[identifier]
    if callable(identifier):
        return identifier  # type: ignore[no-any-return]
    raise not_interpreted("activation function", identifier, _BY_NAME)


__all__ = [*_BY_NAME, "get"]

__getattr__ = absent(__name__, __all__)
