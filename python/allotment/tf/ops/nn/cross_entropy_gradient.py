"""Gradients of cross entropies."""

from typing import Any

import numpy as np

from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.array.layout import expand_dims, reshape
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.autodiff.broadcasting import shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import unchanged
from allotment.tf.ops.nn.softmax import log_softmax, softmax
from allotment.tf.ops.table import operation


@gradient("SoftmaxCrossEntropyWithLogits")
def _cross_entropy(call: Call, upstream: Any) -> list[Any]:
    logits, labels = call.inputs
    same = logits.shape.is_fully_defined() and logits.shape == labels.shape
    shapes = shape_of(logits), shape_of(labels)
    along = expand_dims(upstream, -1)
    if not same:
        # Rows of both, of one width. What had to be broadcast has no gradient: the shapes do not fit then.
        logits, labels = (
            reshape(each, [-1, lengths[-1]]) for each, lengths in zip(call.inputs, shapes, strict=True)
        )
        logits, along = logits + zeros_like(labels), reshape(upstream, [-1, 1])
    made: list[Any] = [None, None]
    if call.wanted[0]:
        # Labels are taken for distributions, whose sum is one.
        made[0] = along * (softmax(logits) - labels)
    if call.wanted[1]:
        made[1] = -along * log_softmax(logits)
    return [
        each if each is None or same else reshape(each, lengths)
        for each, lengths in zip(made, shapes, strict=True)
    ]


def _hits_of(logits: Array, labels: Array) -> Array:
    hits = np.zeros_like(logits)
    np.put_along_axis(hits, labels[..., None].astype(np.intp, copy=False), 1, -1)
    return hits


#: One in the column of each row's label, and zeros.
_hits = operation("OneHotLike", _hits_of, shape=unchanged, same_dtype=False)


@gradient("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_cross_entropy(call: Call, upstream: Any) -> Any:
    logits, labels = call.inputs
    return expand_dims(upstream, -1) * (softmax(logits) - run(_hits, (logits, labels)))


__all__: list[str] = []
