"""Sums of squares, and shrinking tensors to a norm."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.creation import ones_like
from allotment.tf.ops.arrays import Array, in_single
from allotment.tf.ops.convert import tensor_or_slices, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.indexed_slices import IndexedSlices, map_values, values_of
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.math.arithmetic import maximum, minimum, multiply
from allotment.tf.ops.math.comparison import greater, is_finite
from allotment.tf.ops.math.division import realdiv, truediv
from allotment.tf.ops.math.real import sqrt
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.ops.reduction.sums import add_n
from allotment.tf.ops.table import operation
from allotment.tf.tensors.tensor import EagerTensor


def _half_square_sum(array: Array) -> Any:
    # Without an array of the squares.
    flat = array.reshape(-1)
    return np.multiply(np.dot(flat, flat), 0.5)


def _l2_loss_shape(c: Inference) -> list[Output]:
    return c.one(())


_l2_loss = operation("L2Loss", in_single(_half_square_sum), shape=_l2_loss_shape)


def l2_loss(t: Any, name: str | None = None) -> EagerTensor:
    """Half the sum of all squares. As ``tf.nn.l2_loss``."""
    return run(_l2_loss, (to_tensor(t),), name=name)  # type: ignore[no-any-return]


@in_name_scope("global_norm", "global_norm")
def global_norm(t_list: Sequence[Any], name: str | None = None) -> EagerTensor:
    """The Euclidean norm of all elements of all tensors; ``None`` among them is skipped. As ``tf.linalg.global_norm``.

    Raises:
        TypeError: Not a sequence of tensors.
        ValueError: There is no tensor.
    """
    halves = [l2_loss(values_of(each)) for each in _tensors(t_list) if each is not None]
    return sqrt(multiply(add_n(halves), 2.0), name)


@in_name_scope("clip_by_norm")
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> EagerTensor:
    """Shrink a tensor, or its parts along axes, to a Euclidean norm if its own is larger. As ``tf.clip_by_norm``.

    Of slices the norm is that of their rows as they are, and the result is slices.
    """
    if isinstance(t, IndexedSlices):
        return map_values(lambda rows: clip_by_norm(rows, clip_norm, axes, name), t)  # type: ignore[no-any-return]
    t = to_tensor(t)
    is_number = bool(np.isscalar(clip_norm))
    clip_norm = max(clip_norm, 0) if is_number else cast(maximum(clip_norm, 0), t._dtype)
    squares = reduce_sum(multiply(t, t), axes, keepdims=True)
    positive = greater(squares, 0)
    # The root of a zero has no slope.
    norm = where(positive, sqrt(where(positive, squares, ones_like(squares))), squares)
    shrunk = multiply(t, clip_norm)
    if not t.shape.is_compatible_with(shrunk.shape):
        raise ValueError(f"Shapes {t.shape} and {shrunk.shape} are incompatible")
    return truediv(shrunk, maximum(norm, clip_norm), name)


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[EagerTensor | None], EagerTensor]:
    """Shrink tensors together, so that the Euclidean norm of all is at most a number. As ``tf.clip_by_global_norm``.

    Of slices the norm is that of their rows as they are, and the result is slices.

    Args:
        t_list: Tensors, and ``None`` for what is not there.
        clip_norm: The number.
        use_norm: Their norm, if it is known.
        name: Only looked at in error texts.

    Returns:
        The tensors (NaNs, if the norm is not finite) and the norm before.

    Raises:
        TypeError: Not a sequence of tensors.
    """
    tensors = _tensors(t_list)
    norm = global_norm(tensors) if use_norm is None else to_tensor(use_norm)
    limit = to_tensor(clip_norm, like=norm._dtype)
    one = to_tensor(1.0, norm._dtype)
    scale = multiply(limit, minimum(realdiv(one, norm), realdiv(one, limit)))
    scale = where(is_finite(norm), scale, np.nan)
    return [
        None if each is None else map_values(lambda t: multiply(t, scale), each) for each in tensors
    ], norm


def _tensors(t_list: Any) -> list[Any]:
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise TypeError(f"`t_list` should be a sequence. Received {type(t_list)}.")
    return [None if each is None else tensor_or_slices(each) for each in t_list]


__all__ = ["clip_by_global_norm", "clip_by_norm", "global_norm", "l2_loss"]
