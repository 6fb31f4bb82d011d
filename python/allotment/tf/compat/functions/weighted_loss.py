"""``compute_weighted_loss`` of TensorFlow 1: weights, reductions, and the collection of losses."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph
from allotment.tf.ops.array.array import cast, executing_eagerly
from allotment.tf.ops.array.creation import ones_like, zeros_like
from allotment.tf.ops.array.shapes import shape, size
from allotment.tf.ops.control.assert_op import Assert
from allotment.tf.ops.control.control import control_dependencies
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.math.arithmetic import (
    minimum,
    multiply,
)
from allotment.tf.ops.math.comparison import equal
from allotment.tf.ops.math.division import divide_no_nan
from allotment.tf.ops.math.logical import logical_and, logical_or
from allotment.tf.ops.name_scopes import name_scope
from allotment.tf.ops.reduction.reduce import reduce_all, reduce_sum
from allotment.tf.tensors.dtype import float32


class Reduction:
    """The names of reductions of weighted losses. As ``tf.compat.v1.losses.Reduction``."""

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
    """Multiply losses by weights, reduce them to a scalar, and add it to a collection of the graph.

    Args:
        losses: Losses of any shape.
        weights: A scalar, or a tensor of the rank of the losses that broadcasts to them.
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
        with _check_weights(factors, values):
            weighted = multiply(values, factors)
        if reduction == Reduction.NONE:
            loss = weighted
        else:
            loss = reduce_sum(weighted)
            if reduction == Reduction.MEAN:
                loss = divide_no_nan(loss, reduce_sum(multiply(ones_like(values), factors)), name="value")
            elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
                loss = divide_no_nan(loss, reduce_sum(_is_weighted(values, factors)), name="value")
            elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                loss = divide_no_nan(loss, cast(size(values), float32), name="value")
        loss = cast(loss, given.dtype)
    add_loss(loss, loss_collection)
    return loss


def _is_weighted(values: Any, weights: Any) -> Any:
    """Return 1 for each loss whose weight is not 0."""
    found = where(equal(weights, 0.0), zeros_like(weights), ones_like(weights))
    return multiply(found, ones_like(values))


def _check_weights(weights: Any, values: Any) -> AbstractContextManager[None]:
    """Check that weights broadcast to values; for unknown shapes, when the nodes of the ``with`` block run.

    Raises:
        ValueError: They do not.
        InvalidArgumentError: They do not, when the graph runs.
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


def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Add a loss to a collection of the default graph; in eager mode this does nothing."""
    if loss_collection and not executing_eagerly():
        get_default_graph().add_to_collection(loss_collection, loss)


__all__ = ["Reduction", "add_loss", "compute_weighted_loss"]
