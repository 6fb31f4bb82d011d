"""Gradients of softmax and of the losses made of it."""

from typing import Any

from allotment.ops.differentiation import Call, gradient
from allotment.ops.gradients.broadcasting import lengths_of, shape_of, summed_to
from allotment.ops.layout import expand_dims
from allotment.ops.real import exp
from allotment.ops.reduce import reduce_sum
from allotment.ops.sequences import one_hot
from allotment.ops.softmax import log_softmax, softmax


@gradient("Softmax", inputs=False, outputs=True)
def _softmax(call: Call, upstream: Any) -> Any:
    y = call.outputs[0]
    return (upstream - reduce_sum(upstream * y, -1, keepdims=True)) * y


@gradient("LogSoftmax", inputs=False, outputs=True)
def _log_softmax(call: Call, upstream: Any) -> Any:
    return upstream - exp(call.outputs[0]) * reduce_sum(upstream, -1, keepdims=True)


@gradient("SoftmaxCrossEntropyWithLogits")
def _cross_entropy(call: Call, upstream: Any) -> list[Any]:
    logits, labels = call.inputs
    along = expand_dims(upstream, -1)
    made: list[Any] = [None, None]
    if call.wanted[0]:
        # Labels are taken for distributions, whose sum is one.
        made[0] = summed_to(along * (softmax(logits) - labels), shape_of(logits))
    if call.wanted[1]:
        made[1] = summed_to(-along * log_softmax(logits), shape_of(labels))
    return made


@gradient("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_cross_entropy(call: Call, upstream: Any) -> Any:
    logits, labels = call.inputs
    hits = one_hot(labels, int(lengths_of(logits)[-1]), dtype=logits._dtype)
    return expand_dims(upstream, -1) * (softmax(logits) - hits)


__all__: list[str] = []
