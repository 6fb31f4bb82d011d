"""``tf.compat.v1.nn``: ``tf.nn`` with the arguments that TensorFlow 1 had."""

from collections.abc import Callable
from typing import Any, Final

from allotment import nn
from allotment.compat.arguments import renamed
from allotment.compat.missing import missing
from allotment.ops.array import is_tensor
from allotment.ops.math import add, subtract
from allotment.ops.products import matmul


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: Any = None,
    name: str | None = None,
    rate: Any = None,
) -> Any:
    """Set a share of the elements to zero by chance, given what share to keep. As ``tf.compat.v1.nn.dropout``.

    Args:
        x: Floats.
        keep_prob: The share to keep; not beside ``rate``.
        noise_shape: A shape that broadcasts to that of ``x``.
        seed: Of the random numbers.
        name: The node's name.
        rate: The share to set to zero.

    Raises:
        ValueError: Both shares are given, or none, or one that is no share.
    """
    if (keep_prob is None) == (rate is None):
        raise ValueError("You must provide either a `rate` or a `keep_prob` to `dropout`, and not both.")
    if keep_prob is not None:
        if not is_tensor(keep_prob) and not 0 < float(keep_prob) <= 1:
            raise ValueError(f"keep_prob must be a number above 0 and up to 1, not {keep_prob!r}")
        rate = subtract(1.0, keep_prob) if is_tensor(keep_prob) else 1 - keep_prob
    return nn.dropout(x, rate, noise_shape, seed, name)


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Any:
    """Whether targets are among the ``k`` largest predictions. As ``tf.compat.v1.nn.in_top_k``."""
    return nn.in_top_k(targets, predictions, k, name)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """The product of two matrices, and a row added. As ``tf.compat.v1.nn.xw_plus_b``."""
    return add(matmul(x, weights), biases, name)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """``xw_plus_b`` with zeros in the place of what is negative. As ``tf.compat.v1.nn.relu_layer``."""
    return nn.relu(xw_plus_b(x, weights, biases), name)


_DIM: Final = {"dim": "axis"}
_VALUE: Final = {"value": "input"}
_FILTER: Final = {"filter": "filters"}
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "avg_pool": renamed(nn.avg_pool, _VALUE),
    "conv1d": renamed(nn.conv1d, _VALUE),
    "conv2d": renamed(nn.conv2d, _FILTER),
    "conv2d_transpose": renamed(nn.conv2d_transpose, _VALUE | _FILTER),
    "dropout": dropout,
    "in_top_k": in_top_k,
    "log_softmax": renamed(nn.log_softmax, _DIM),
    "max_pool": renamed(nn.max_pool, _VALUE),
    "moments": renamed(nn.moments, {"keep_dims": "keepdims"}),
    "relu_layer": relu_layer,
    "softmax": renamed(nn.softmax, _DIM),
    "softmax_cross_entropy_with_logits": renamed(nn.softmax_cross_entropy_with_logits, _DIM),
    "softmax_cross_entropy_with_logits_v2": renamed(nn.softmax_cross_entropy_with_logits, _DIM),
    "weighted_cross_entropy_with_logits": renamed(
        nn.weighted_cross_entropy_with_logits, {"targets": "labels"}
    ),
    "xw_plus_b": xw_plus_b,
}


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name in nn.__all__:
        return getattr(nn, name)
    raise missing("allotment.compat.v1.nn", name, __dir__())


def __dir__() -> list[str]:
    return sorted({*nn.__all__, *_FUNCTIONS})
