"""``tf.compat.v1.where``, whose conditions choose whole rows and are not broadcast."""

from typing import Any

import numpy as np

from allotment.tf.ops import faults
from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.convert import to_pair, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing import masking
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.tensor import Tensor


def _fault(condition: Array, x: Array, y: Array) -> str | None:
    if x.shape != y.shape:
        return f"'then' and 'else' must have the same size. But received: {dims(x)} vs. {dims(y)}"
    if condition.ndim == 1 != x.ndim:
        if x.ndim == 0:
            return f"'then' must be at least a vector, but saw shape: {dims(x)}"
        if len(condition) != len(x):
            return f"Number of batches of 'then' must match size of 'cond', but saw: {len(x)} vs. {len(condition)}"
    elif condition.ndim and condition.shape != x.shape:
        return (
            "Inputs to operation Select of type Select must have the same size and shape.  "
            f"Input 0: {dims(condition)} != input 1: {dims(x)}"
        )
    return None


def _select(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim)), x, y)


def _select_shape(c: Inference) -> list[Output]:
    dims, condition = c.merged(c.shape(1), c.shape(2)), c.shape(0)
    if dims and condition and len(condition) == 1 < len(dims):
        c.same(condition[0], dims[0])
    elif condition and (dims is not None or len(condition) > 1):
        dims = c.merged(dims, condition)
    return c.one(dims, c.dtype(1))


_row = operation("Select", _select, shape=_select_shape, fault=_fault, same_dtype=False)


@gradient("Select", inputs=(0,))
def _back(call: Call, upstream: Any) -> list[Any]:
    condition, zeros = call.inputs[0], zeros_like(upstream)
    return [
        None,
        run(_row, (condition, upstream, zeros)) if call.wanted[1] else None,
        run(_row, (condition, zeros, upstream)) if call.wanted[2] else None,
    ]


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Select elements of ``x`` where a condition is true, otherwise of ``y``; or return the indices of true elements.

    As ``tf.compat.v1.where``: ``x`` and ``y`` have one shape, and the condition is a scalar, has that shape, or is a
    vector that chooses rows. With ``condition`` alone the result is that of ``tf.where``.

    Raises:
        ValueError: Only one of ``x`` and ``y`` is given.
        InvalidArgumentError: The shapes do not match.
    """
    if x is None or y is None:
        return masking.where(condition, x, y, name)
    test: Any = condition if isinstance(condition, Tensor) else to_tensor(condition, like=bool_)
    if test._dtype is not bool_:
        raise faults.mismatched("Select", 0, bool_, test._dtype, name)
    x, y = to_pair(x, y)
    if x._dtype is not y._dtype:
        raise faults.mismatched("Select", 2, x._dtype, y._dtype, name)
    return run(_row, (test, x, y), name=name)


__all__ = ["where"]
