"""Activation functions."""

from typing import Any, Final

import numpy as np

from allotment.tf.ops.arguments.scalars import flag_argument, float_argument
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.arrays import Array, as_array, in_single
from allotment.tf.ops.blocks import choose_into, in_blocks, limit
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import unchanged
from allotment.tf.ops.math.arithmetic import add, multiply, negative
from allotment.tf.ops.math.arithmetic import pow as power
from allotment.tf.ops.math.real import log1p_into, sigmoid, tanh
from allotment.tf.ops.math.special import erfc
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.public import unary
from allotment.tf.ops.table import operation
from allotment.tf.tensors.dtype import float32
from allotment.tf.tensors.tensor import EagerTensor, Tensor

#: Of ``selu``: they keep mean 0 and variance 1 from layer to layer.
SELU_SCALE: Final = 1.0507009873554804934193349852946
SELU_ALPHA: Final = 1.6732632423543772848170429916717


def _relu_of(x: Array) -> Any:
    return limit(np.maximum, x, 0)


def _relu6_of(x: Array) -> Any:
    result = as_array(limit(np.maximum, x, 0))
    return limit(np.minimum, result, 6, result)


@in_blocks
def _leaky_relu_of(out: Array, x: Array, alpha: float) -> None:
    # TensorFlow keeps the factor in single precision, whatever the elements are.
    np.multiply(x, x.dtype.type(np.float32(alpha)), out=out)
    if 0 < alpha <= 1:
        np.maximum(x, out, out=out)
    else:
        choose_into(out, np.less_equal(x, 0), out, x)


@in_blocks
def _elu_of(out: Array, x: Array) -> None:
    # As TensorFlow's, which loses digits near zero: that of `expm1` would differ.
    np.exp(x, out=out)
    np.subtract(out, 1, out=out)
    choose_into(out, np.less(x, 0), out, x)


@in_blocks
def _selu_of(out: Array, x: Array) -> None:
    np.exp(x, out=out)
    np.subtract(out, 1, out=out)
    np.multiply(out, SELU_SCALE * SELU_ALPHA, out=out)
    choose_into(out, np.less(x, 0), out, np.multiply(x, SELU_SCALE))


@in_single
@in_blocks
def _softplus_of(out: Array, x: Array) -> None:
    # log(1 + exp(x)) is max(x, 0) + log1p(exp(-abs(x))), which does not overflow.
    np.abs(x, out=out)
    np.negative(out, out=out)
    np.exp(out, out=out)
    log1p_into(out, out)
    np.add(out, np.maximum(x, np.zeros_like(x)), out=out)


@in_single
def _softsign_of(x: Array) -> Any:
    result = as_array(np.abs(x))
    np.add(result, 1, out=result)
    return np.true_divide(x, result, out=result)


_relu = unary(operation("Relu", _relu_of, shape=unchanged))
_relu6 = unary(operation("Relu6", _relu6_of, shape=unchanged))
_leaky_relu = operation("LeakyRelu", _leaky_relu_of, shape=unchanged)
_elu = unary(operation("Elu", _elu_of, shape=unchanged))
_selu = unary(operation("Selu", _selu_of, shape=unchanged))
_softplus = unary(operation("Softplus", _softplus_of, shape=unchanged))
_softsign = unary(operation("Softsign", _softsign_of, shape=unchanged))


def relu(features: Any, name: str | None = None) -> EagerTensor:
    """The element, or zero if it is below. As ``tf.nn.relu``."""
    return _relu(features, name)


def relu6(features: Any, name: str | None = None) -> EagerTensor:
    """The element, moved into the interval from 0 to 6. As ``tf.nn.relu6``."""
    return _relu6(features, name)


def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> EagerTensor:
    """The element, times ``alpha`` if it is below zero; integers become float32. As ``tf.nn.leaky_relu``."""
    features = to_tensor(features)
    if features._dtype.is_integer:
        features = cast(features, float32)
    if isinstance(alpha, Tensor):
        raise TypeError(f"Expected float for argument 'alpha' not {alpha!r}.")
    slope = _single(0.2 if alpha is None else float_argument(alpha, "alpha"))
    return run(_leaky_relu, (features,), slope, name=name)  # type: ignore[no-any-return]


def elu(features: Any, name: str | None = None) -> EagerTensor:
    """The element, ``exp(x) - 1`` if it is below zero. As ``tf.nn.elu``."""
    return _elu(features, name)


def selu(features: Any, name: str | None = None) -> EagerTensor:
    """``elu`` with the two factors of self-normalising networks. As ``tf.nn.selu``."""
    return _selu(features, name)


def softplus(features: Any, name: str | None = None) -> EagerTensor:
    """``log(1 + exp(x))``, without overflow. As ``tf.math.softplus``."""
    return _softplus(features, name)


def softsign(features: Any, name: str | None = None) -> EagerTensor:
    """``x / (1 + |x|)``. As ``tf.nn.softsign``."""
    return _softsign(features, name)


def silu(features: Any, beta: Any = 1.0) -> EagerTensor:
    """``x * sigmoid(beta * x)``. As ``tf.nn.silu``, also called ``swish``."""
    features = to_tensor(features)
    return multiply(features, sigmoid(multiply(cast(to_tensor(beta), features._dtype), features)))


swish = silu


def crelu(features: Any, axis: Any = -1, name: str | None = None) -> EagerTensor:
    """``relu`` of the elements and of their opposites, one behind the other. As ``tf.nn.crelu``."""
    features = to_tensor(features)
    return relu(concat([features, negative(features)], axis), name)


@in_name_scope("Gelu", "mul_2")
def gelu(features: Any, approximate: bool = False, name: str | None = None) -> EagerTensor:
    """``x`` times the share of the normal distribution below it; ``approximate`` by ``tanh``. As ``tf.nn.gelu``.

    Raises:
        ValueError: The tensor has integers.
    """
    features = to_tensor(features)
    if not features._dtype.is_floating:
        raise ValueError(
            f"`features.dtype` must be a floating point tensor. Received:features.dtype={features._dtype!r}"
        )
    if flag_argument(approximate, "approximate"):
        cubes = multiply(power(features, 3), _single(0.044715))
        inner = multiply(add(features, cubes), 0.7978845608028654)
        return multiply(multiply(features, 0.5), add(tanh(inner), 1.0), name)
    # Not one plus the error function, of which nothing is left far below zero.
    tail = erfc(multiply(negative(features), _single(0.5**0.5)))
    return multiply(multiply(features, 0.5), tail, name)


def _single(number: float) -> float:
    """A constant in single precision, which TensorFlow's are in all types."""
    return float(np.float32(number))


__all__ = [
    "crelu",
    "elu",
    "gelu",
    "leaky_relu",
    "relu",
    "relu6",
    "selu",
    "silu",
    "softplus",
    "softsign",
    "swish",
]
