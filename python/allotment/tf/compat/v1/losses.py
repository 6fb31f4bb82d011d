"""``tf.compat.v1.losses``: weighted losses, reduced to a scalar that is added to a collection of the graph."""

from collections.abc import Callable
from typing import Any

from allotment.tf.compat.functions.weighted_loss import Reduction, add_loss, compute_weighted_loss
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph
from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.array.array import cast, stop_gradient
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.array.layout import reshape, squeeze
from allotment.tf.ops.array.shapes import rank, shape, size
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.arithmetic import abs as absolute
from allotment.tf.ops.math.arithmetic import (
    add,
    minimum,
    multiply,
    square,
    squared_difference,
    subtract,
)
from allotment.tf.ops.math.comparison import equal
from allotment.tf.ops.name_scopes import name_scope
from allotment.tf.ops.nn.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from allotment.tf.ops.public import public
from allotment.tf.ops.reduction.sums import add_n
from allotment.tf.tensors.dtype import float32, int32


def _inputs(what: str, labels: Any, predictions: Any, dtype: Any = float32) -> tuple[Any, Any]:
    """Convert labels and predictions to one type.

    Raises:
        ValueError: One is missing, or the shapes are different.
    """
    for name, value in (("labels", labels), (what, predictions)):
        if value is None:
            raise ValueError(f"Argument `{name}` must not be None.")
    made = to_tensor(predictions) if dtype is None else cast(predictions, dtype)
    true = cast(labels, made.dtype)
    made.shape.assert_is_compatible_with(true.shape)
    return true, made


def _loss(
    values: Callable[..., Any],
    name: str,
    weights: Any,
    scope: str | None,
    collection: str | None,
    reduction: str,
    labels: Any,
    predictions: Any,
) -> Any:
    """Compute a loss from a function of labels and predictions in float32."""
    with name_scope(scope or name) as inner:
        computed = values(*_inputs("predictions", labels, predictions))
        return compute_weighted_loss(computed, weights, inner, collection, reduction)


def _weighted_loss(values: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """Make a loss of ``tf.compat.v1.losses`` that has no arguments beside those of ``compute_weighted_loss``."""

    def loss(
        labels: Any,
        predictions: Any,
        weights: Any = 1.0,
        scope: str | None = None,
        loss_collection: str | None = GraphKeys.LOSSES,
        reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    ) -> Any:
        return _loss(values, name, weights, scope, loss_collection, reduction, labels, predictions)

    return public(loss, name, f"{doc}, reduced; see ``compute_weighted_loss``.")


absolute_difference = _weighted_loss(
    lambda true, made: absolute(subtract(made, true)),
    "absolute_difference",
    "Return the weighted absolute differences",
)
mean_squared_error = _weighted_loss(
    lambda true, made: squared_difference(made, true),
    "mean_squared_error",
    "Return the weighted squared differences",
)


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Return half the squared difference, linear from ``delta`` on; see ``compute_weighted_loss``."""

    def values(true: Any, made: Any) -> Any:
        error = absolute(subtract(made, true))
        curved = minimum(error, delta)
        return add(multiply(square(curved), 0.5), multiply(delta, subtract(error, curved)))

    return _loss(values, "huber_loss", weights, scope, loss_collection, reduction, labels, predictions)


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: Any = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Return the cross entropies of logits of independent classes, reduced; see ``compute_weighted_loss``."""
    with name_scope(scope or "sigmoid_cross_entropy_loss") as inner:
        true, made = _inputs("logits", multi_class_labels, logits, None)
        if label_smoothing > 0:
            true = add(multiply(true, 1 - label_smoothing), 0.5 * label_smoothing)
        values = sigmoid_cross_entropy_with_logits(labels=true, logits=made, name="xentropy")
        return compute_weighted_loss(values, weights, inner, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: Any = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Return the cross entropies between distributions over classes and logits, reduced."""
    with name_scope(scope or "softmax_cross_entropy_loss") as inner:
        true, made = _inputs("logits", onehot_labels, logits, None)
        if label_smoothing > 0:
            classes = cast(shape(true)[-1], made.dtype)
            true = add(multiply(true, 1.0 - label_smoothing), label_smoothing / classes)
        values = softmax_cross_entropy_with_logits(labels=stop_gradient(true), logits=made, name="xentropy")
        return compute_weighted_loss(values, weights, inner, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Return the cross entropies between classes, given by number, and logits, reduced."""
    for name, value in (("labels", labels), ("logits", logits)):
        if value is None:
            raise ValueError(f"Argument `{name}` must not be None.")
    with name_scope(scope or "sparse_softmax_cross_entropy_loss") as inner:
        true, made, factors = to_tensor(labels), to_tensor(logits), to_tensor(weights)
        true = _without_column(true, made, 0)
        factors = _without_column(factors, true, 1)
        values = sparse_softmax_cross_entropy_with_logits(labels=true, logits=made, name="xentropy")
        return compute_weighted_loss(values, factors, inner, loss_collection, reduction)


def _without_column(x: Any, like: Any, more: int) -> Any:
    """Remove the last axis, of length 1, from a tensor if its rank exceeds that of another by ``more``."""
    mine, theirs = x.shape.rank, like.shape.rank
    if None not in (mine, theirs):
        is_one = mine == theirs + more and mine and (more or x.shape.as_list()[-1] in (1, None))
        return squeeze(x, [-1]) if is_one else x
    if mine == 0 or (mine is not None and x.shape.as_list()[-1] not in (1, None)):
        return x
    # The ranks are known when a session runs.
    lengths = shape(x)
    gone = cast(equal(rank(x) - rank(like), more), int32)
    return reshape(x, lengths[: size(lengths) - gone])


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """Return the losses of a collection; with a scope, those whose names begin with it."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """Return the losses that regularizers have added."""
    return get_losses(scope, GraphKeys.REGULARIZATION_LOSSES)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Any:
    """Return the sum of the losses that regularizers have added."""
    found = get_regularization_losses(scope)
    return add_n(found, name=name) if found else constant(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Any:
    """Return the sum of all losses that were collected.

    Raises:
        ValueError: There is none.
    """
    found = get_losses(scope)
    if add_regularization_losses:
        found = found + get_regularization_losses(scope)
    return add_n(found, name=name)


__all__ = [
    "Reduction",
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
    "huber_loss",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]

refuse_other_names(__name__)
