"""``tf.compat.v1.losses``: losses as one number, which graphs collect. Labels come first, as in TensorFlow 1."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph
from allotment.tf.names.missing_names import module_getattr
from allotment.tf.ops.array.array import cast, executing_eagerly, stop_gradient
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.array.creation import ones_like, zeros_like
from allotment.tf.ops.array.layout import reshape, squeeze
from allotment.tf.ops.array.shapes import rank, shape, size
from allotment.tf.ops.control.assert_op import Assert
from allotment.tf.ops.control.control import control_dependencies
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.math.arithmetic import abs as absolute
from allotment.tf.ops.math.arithmetic import (
    add,
    maximum,
    minimum,
    multiply,
    negative,
    square,
    squared_difference,
    subtract,
)
from allotment.tf.ops.math.comparison import equal, greater
from allotment.tf.ops.math.division import divide_no_nan
from allotment.tf.ops.math.logical import logical_and, logical_or
from allotment.tf.ops.math.real import log
from allotment.tf.ops.math.sequences import range as numbers
from allotment.tf.ops.name_scopes import name_scope
from allotment.tf.ops.nn.activations import relu
from allotment.tf.ops.nn.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from allotment.tf.ops.reduction.reduce import reduce_all, reduce_sum
from allotment.tf.ops.reduction.sums import add_n
from allotment.tf.tensors.dtype import float32, int32


class Reduction:
    """Reductions of weighted losses. As ``tf.compat.v1.losses.Reduction``."""

    NONE: Final = "none"
    SUM: Final = "weighted_sum"
    SUM_OVER_BATCH_SIZE: Final = "weighted_sum_over_batch_size"
    MEAN: Final = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS: Final = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS: Final = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Return all reductions."""
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS)

    @classmethod
    def validate(cls, key: str) -> None:
        """Check that a name is one of a reduction.

        Raises:
            ValueError: It is none.
        """
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}. Key should be one of {cls.all()}.")


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Multiply losses by weights and reduce them to one number, which is added to a collection of the graph.

    Args:
        losses: Losses of any shape.
        weights: A number, or a tensor of the rank of the losses whose axes have their lengths or 1.
        scope: The name of the operations.
        loss_collection: The collection, ``None`` for none.
        reduction: One of ``Reduction``.

    Raises:
        ValueError: Another reduction, or weights that do not broadcast to the losses.
    """
    Reduction.validate(reduction)
    with name_scope(scope or "weighted_loss"):
        given = to_tensor(losses)
        values, factors = cast(given, float32), cast(weights, float32)
        with _checked_weights(factors, values):
            weighted = multiply(values, factors)
        if reduction == Reduction.NONE:
            loss = weighted
        else:
            loss = reduce_sum(weighted)
            if reduction == Reduction.MEAN:
                loss = divide_no_nan(loss, reduce_sum(multiply(ones_like(values), factors)), name="value")
            elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
                loss = divide_no_nan(loss, reduce_sum(_present(values, factors)), name="value")
            elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                loss = divide_no_nan(loss, cast(size(values), float32), name="value")
        loss = cast(loss, given.dtype)
    add_loss(loss, loss_collection)
    return loss


def _present(values: Any, weights: Any) -> Any:
    """Return 1 for each loss whose weight is not 0."""
    found = where(equal(weights, 0.0), zeros_like(weights), ones_like(weights))
    return multiply(found, ones_like(values))


def _checked_weights(weights: Any, values: Any) -> AbstractContextManager[None]:
    """Check that weights are broadcast to values; what a graph does not know of that, before the nodes of the block.

    Raises:
        ValueError: They are not.
        InvalidArgumentError: They are not, when the graph runs.
    """
    mine, theirs = weights.shape, values.shape
    if mine.rank == 0:
        return nullcontext()
    known = mine.is_fully_defined() and theirs.is_fully_defined()
    if (None not in (mine.rank, theirs.rank) and mine.rank != theirs.rank) or (
        known and any(a not in (b, 1) for a, b in zip(mine.as_list(), theirs.as_list(), strict=True))
    ):
        raise ValueError(
            "weights can not be broadcast to values: they have rank 0, or the rank of the values and in each axis "
            f"their length or 1. Received: weights of shape {mine}, values of shape {theirs}"
        )
    if known:
        return nullcontext()
    ours, wanted = shape(weights), shape(values)
    both = minimum(size(ours), size(wanted))
    fits = reduce_all(logical_or(equal(ours[:both], 1), equal(ours[:both], wanted[:both])))
    fits = logical_or(equal(size(ours), 0), logical_and(equal(size(ours), size(wanted)), fits))
    data = ["weights can not be broadcast to values.", "weights.shape=", ours, "values.shape=", wanted]
    return control_dependencies([Assert(fits, data)])


def _inputs(what: str, labels: Any, predictions: Any, dtype: Any = float32) -> tuple[Any, Any]:
    """Labels and predictions in one type.

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


def _loss(values: Callable[..., Any], name: str, what: str = "predictions") -> Callable[..., Any]:
    """Make a loss of a function of labels and predictions in float32."""

    def loss(
        labels: Any, predictions: Any, weights: Any, scope: str | None, collection: Any, reduction: str
    ) -> Any:
        with name_scope(scope or name):
            computed = values(*_inputs(what, labels, predictions))
            return compute_weighted_loss(computed, weights, None, collection, reduction)

    return loss


_absolute: Final = _loss(lambda true, made: absolute(subtract(made, true)), "absolute_difference")
_squared: Final = _loss(lambda true, made: squared_difference(made, true), "mean_squared_error")
_hinge: Final = _loss(
    lambda true, made: relu(
        subtract(ones_like(true), multiply(subtract(multiply(true, 2.0), ones_like(true)), made))
    ),
    "hinge_loss",
    "logits",
)


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Return the weighted absolute differences, reduced; see ``compute_weighted_loss``."""
    return _absolute(labels, predictions, weights, scope, loss_collection, reduction)


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Return the weighted squared differences, reduced; see ``compute_weighted_loss``."""
    return _squared(labels, predictions, weights, scope, loss_collection, reduction)


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Return the hinge loss of labels 0 and 1, reduced; see ``compute_weighted_loss``."""
    return _hinge(labels, logits, weights, scope, loss_collection, reduction)


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Return half the squared difference, a straight line from ``delta`` on; see ``compute_weighted_loss``."""

    def values(true: Any, made: Any) -> Any:
        error = absolute(subtract(made, true))
        curved = minimum(error, delta)
        return add(multiply(square(curved), 0.5), multiply(delta, subtract(error, curved)))

    return _loss(values, "huber_loss")(labels, predictions, weights, scope, loss_collection, reduction)


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: Any = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Return the cross entropy of probabilities of two classes, reduced; see ``compute_weighted_loss``."""

    def values(true: Any, made: Any) -> Any:
        right = multiply(true, log(add(made, epsilon)))
        wrong = multiply(1.0 - true, log(add(1.0 - made, epsilon)))
        return subtract(negative(right), wrong)

    return _loss(values, "log_loss")(labels, predictions, weights, scope, loss_collection, reduction)


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: int | None = None,
) -> Any:
    """Return 1 less the product of unit vectors along an axis, reduced; see ``compute_weighted_loss``.

    Raises:
        ValueError: There is no axis, or both ``axis`` and its older name ``dim``.
    """
    if axis is not None and dim is not None:
        raise ValueError("Cannot specify both 'axis' and 'dim'.")
    along = dim if axis is None else axis
    if along is None:
        raise ValueError("You must specify argument `axis`.")

    def values(true: Any, made: Any) -> Any:
        return 1.0 - reduce_sum(multiply(made, true), [along], keepdims=True)

    return _loss(values, "cosine_distance_loss")(
        labels, predictions, weights, scope, loss_collection, reduction
    )


def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Any:
    """Return the mean, over the pairs of elements of a sample, of the squares of how much their differences differ."""
    with name_scope(scope or "mean_pairwise_squared_error"):
        true, made = _inputs("predictions", labels, predictions)
        factors = cast(weights, float32)
        with _checked_weights(factors, true):
            differences = subtract(made, true)
        axes = (
            numbers(1, rank(differences))
            if differences.shape.rank is None
            else list(range(1, differences.shape.rank))
        )
        if executing_eagerly() and factors.shape.rank == 0 and float(factors):
            # As in TensorFlow, where one weight for all counts the elements of all samples.
            count = cast(size(differences), float32)
        else:
            count = reduce_sum(_present(differences, factors), axes, keepdims=True)
        squares = reduce_sum(square(differences), axes, keepdims=True)
        total = reduce_sum(differences, axes, keepdims=True)
        first = multiply(divide_no_nan(squares, maximum(subtract(count, 1.0), 0.0)), 2.0)
        second = multiply(
            2.0, divide_no_nan(square(total), maximum(multiply(count, subtract(count, 1.0)), 0.0))
        )
        loss = reduce_sum(multiply(subtract(first, second), factors))
        loss = where(greater(reduce_sum(count), 0.0), loss, zeros_like(loss))
    add_loss(loss, loss_collection)
    return loss


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
    with name_scope(scope or "sigmoid_cross_entropy_loss"):
        true, made = _inputs("logits", multi_class_labels, logits, None)
        if label_smoothing > 0:
            true = add(multiply(true, 1 - label_smoothing), 0.5 * label_smoothing)
        values = sigmoid_cross_entropy_with_logits(labels=true, logits=made, name="xentropy")
        return compute_weighted_loss(values, weights, None, loss_collection, reduction)


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
    with name_scope(scope or "softmax_cross_entropy_loss"):
        true, made = _inputs("logits", onehot_labels, logits, None)
        if label_smoothing > 0:
            classes = cast(shape(true)[-1], made.dtype)
            true = add(multiply(true, 1.0 - label_smoothing), label_smoothing / classes)
        values = softmax_cross_entropy_with_logits(labels=stop_gradient(true), logits=made, name="xentropy")
        return compute_weighted_loss(values, weights, None, loss_collection, reduction)


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
    with name_scope(scope or "sparse_softmax_cross_entropy_loss"):
        true, made, factors = to_tensor(labels), to_tensor(logits), to_tensor(weights)
        true = _without_column(true, made, 0)
        factors = _without_column(factors, true, 1)
        values = sparse_softmax_cross_entropy_with_logits(labels=true, logits=made, name="xentropy")
        return compute_weighted_loss(values, factors, None, loss_collection, reduction)


def _without_column(x: Any, like: Any, more: int) -> Any:
    """Take the last axis, of length 1, off a tensor if it has so many axes more than another one."""
    mine, theirs = x.shape.rank, like.shape.rank
    if None not in (mine, theirs):
        is_one = mine == theirs + more and mine and (more or x.shape.as_list()[-1] in (1, None))
        return squeeze(x, [-1]) if is_one else x
    if mine == 0 or (mine is not None and x.shape.as_list()[-1] not in (1, None)):
        return x
    # Only a session knows.
    lengths = shape(x)
    gone = cast(equal(rank(x) - rank(like), more), int32)
    return reshape(x, lengths[: size(lengths) - gone])


def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Add a loss to a collection of the default graph; eagerly there is none."""
    if loss_collection and not executing_eagerly():
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """Return the losses of a collection, those whose names begin as the scope if there is one."""
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
    "cosine_distance",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]

__getattr__ = module_getattr(__name__, __all__)
