"""Activation functions. As ``keras.activations``."""

from collections.abc import Callable
from typing import Any, Final

from allotment.tf.dispatch import thread
from allotment.tf.keras.absent import look_up
from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import reshape, transpose
from allotment.tf.ops.array.shapes import shape
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.math.arithmetic import add, maximum, minimum, multiply, negative, subtract
from allotment.tf.ops.math.comparison import greater
from allotment.tf.ops.math.real import exp
from allotment.tf.ops.math.real import sigmoid as _sigmoid
from allotment.tf.ops.math.real import tanh as _tanh
from allotment.tf.ops.nn.activations import elu as _elu
from allotment.tf.ops.nn.activations import gelu, relu6, selu, softplus, softsign
from allotment.tf.ops.nn.activations import leaky_relu as _leaky_relu
from allotment.tf.ops.nn.activations import relu as _relu
from allotment.tf.ops.nn.softmax import log_softmax
from allotment.tf.ops.nn.softmax import softmax as _softmax
from allotment.tf.tensors.dtype import float32
from allotment.tf.tensors.tensor import EagerTensor

Activation = Callable[..., EagerTensor]


def linear(x: Any) -> Any:
    """Return the argument."""
    return x


def sigmoid(x: Any) -> EagerTensor:
    """Return ``1 / (1 + exp(-x))``. Cross entropies of the result are computed from ``x``."""
    return _with_logits(_sigmoid(x), x)


def softmax(x: Any, axis: Any = -1) -> EagerTensor:
    """Return exponentials divided by their sum along an axis. Cross entropies of the result are computed from ``x``.

    Args:
        x: A tensor.
        axis: An axis, several in a tuple, or ``None`` for all of them.
    """
    return _with_logits(_softmax_over(to_tensor(x), axis), x)


def _with_logits(made: EagerTensor, logits: Any) -> EagerTensor:
    """Let losses find the logits of probabilities."""
    made._keras_logits = logits
    if thread.state.in_function and type(made) is EagerTensor and not hasattr(made, "_activation"):
        # It was made in this function, if not by one operation.
        made._activation = "", to_tensor(logits)
    return made


def _softmax_over(x: EagerTensor, axis: Any) -> EagerTensor:
    if axis is None:
        return reshape(_softmax(reshape(x, [-1])), shape(x))
    if not isinstance(axis, tuple):
        return _softmax(x, axis)
    rank = x.ndim
    order = [*(each for each in range(rank) if each not in axis), *axis]
    moved = transpose(x, order)
    lengths = shape(moved)
    flat = reshape(moved, concat([lengths[: rank - len(axis)], [-1]], 0))
    return transpose(reshape(_softmax(flat), lengths), sorted(range(rank), key=order.__getitem__))


def relu(
    x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> EagerTensor:
    """Keep elements above ``threshold``, cut at ``max_value``; others become 0, or fall with ``negative_slope``."""
    given = to_tensor(x)
    if negative_slope and max_value is None and not threshold:
        return leaky_relu(given, negative_slope)
    below = None
    if negative_slope:
        below = _relu(add(negative(given), threshold)) if threshold else _relu(negative(given))
    if threshold:
        limit, zero = (cast(constant(float(each)), given._dtype) for each in (threshold, 0))
        result = where(greater(given, limit), given, zero)
    elif max_value == 6:
        result = relu6(given)
    else:
        result = _relu(given)
    if max_value is not None and (threshold or max_value != 6):
        low, high = (cast(constant(float(each)), result._dtype) for each in (0, max_value))
        result = minimum(maximum(result, low), high)
    return result if below is None else subtract(result, multiply(negative_slope, below))


def elu(x: Any, alpha: float = 1.0) -> EagerTensor:
    """Keep elements above 0; others become ``alpha * (exp(x) - 1)``."""
    given = to_tensor(x)
    result = _elu(given)
    if alpha == 1:
        return result
    return where(greater(given, cast(constant(0.0), given._dtype)), result, multiply(alpha, result))


def leaky_relu(x: Any, negative_slope: float = 0.2) -> EagerTensor:
    """Keep elements above 0, and multiply others by ``negative_slope``."""
    return _leaky_relu(x, negative_slope)


def silu(x: Any) -> EagerTensor:
    """Return ``x * sigmoid(x)``."""
    given = to_tensor(x)
    return multiply(given, _sigmoid(given))


def exponential(x: Any) -> EagerTensor:
    """Return ``exp(x)``; integers become float32."""
    return exp(_floating(x))


def tanh(x: Any) -> EagerTensor:
    """Return the hyperbolic tangent; integers become float32."""
    return _tanh(_floating(x))


def _floating(x: Any) -> EagerTensor:
    given = to_tensor(x)
    return cast(given, float32) if given._dtype.is_integer or given._dtype.is_bool else given


def hard_sigmoid(x: Any) -> EagerTensor:
    """Return ``x / 6 + 0.5``, clipped to 0 and 1."""
    return minimum(maximum(to_tensor(x) / 6.0 + 0.5, 0.0), 1.0)


def mish(x: Any) -> EagerTensor:
    """Return ``x * tanh(softplus(x))``."""
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
    """Return the activation of a name, ``linear`` for ``None``; other functions are returned as they are.

    Raises:
        ValueError: Unknown.
    """
    return linear if identifier is None else look_up("activation function", identifier, _BY_NAME)


__all__ = [*_BY_NAME, "get"]

refuse_other_names(__name__)
