"""Losses of a replica's samples, scaled to their share of the whole batch: ``tf.nn.compute_average_loss``."""

from typing import Any

from allotment.tf.distribute.scopes import current_scope
from allotment.tf.ops.array.array import cast, get_static_value, identity
from allotment.tf.ops.array.layout import expand_dims, squeeze
from allotment.tf.ops.array.shapes import shape
from allotment.tf.ops.control.control import control_dependencies
from allotment.tf.ops.control.shape_assertions import assert_rank_at_least
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.math.arithmetic import multiply
from allotment.tf.ops.math.division import divide, divide_no_nan
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.tensors.dtype import float32, float64
from allotment.tf.tensors.tensor import EagerTensor


def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> EagerTensor:
    """Add up the losses of samples and divide by the number of samples of all replicas.

    So the sum over replicas is the mean over the whole batch. As ``tf.nn.compute_average_loss``.

    Args:
        per_example_loss: A loss for each sample of this replica.
        sample_weight: A factor for each loss.
        global_batch_size: Samples of all replicas, those of this one times the number of replicas unless given.

    Raises:
        ValueError: The losses have no axis, or ``global_batch_size`` is below zero.
        TypeError: ``global_batch_size`` is no integer.
    """
    losses = to_tensor(per_example_loss)
    if rank_of(losses) == 0:
        raise ValueError("Loss must have a rank of at least 1: a loss for each sample, not one of all")
    if rank_of(losses) is None:
        # The rank is known when a session runs.
        with control_dependencies([assert_rank_at_least(losses, 1)]):
            losses = identity(losses)
    if sample_weight is not None:
        losses = cast(_weighted(losses, to_tensor(sample_weight)), losses._dtype)
    if global_batch_size is None:
        here: Any = losses.shape[0]
        samples = (shape(losses)[0] if here is None else here) * _replicas()
    else:
        samples = _integer(global_batch_size)
    return divide_no_nan(reduce_sum(losses), cast(samples, losses._dtype))


def _weighted(losses: EagerTensor, weights: EagerTensor) -> EagerTensor:
    """The products of losses and weights, of which one may have an axis of length 1 more at its end."""
    wide = float64 if losses._dtype == float64 else float32
    losses, weights = cast(losses, wide), cast(weights, wide)
    rank, own = rank_of(losses), rank_of(weights)
    if rank is not None and own:
        if own == rank + 1:
            weights = squeeze(weights, [-1])
        elif own == rank - 1:
            weights = expand_dims(weights, -1)
    return multiply(losses, weights)


def scale_regularization_loss(regularization_loss: Any) -> EagerTensor:
    """Divide the sum of a loss by the number of replicas, each of which adds it. As in ``tf.nn``.

    Raises:
        RuntimeError: In the scope of a strategy, and not in a replica.
    """
    scope = current_scope()
    if scope is not None and scope.replica is None:
        raise RuntimeError(
            "You are calling `scale_regularization_loss` in cross replica context, while it was expected to be called "
            "in replica context."
        )
    return divide(reduce_sum(to_tensor(regularization_loss)), _replicas())


def _replicas() -> int:
    scope = current_scope()
    return 1 if scope is None else scope.strategy.num_replicas_in_sync


def _integer(value: Any) -> Any:
    number = to_tensor(value)
    if rank_of(number) or not number._dtype.is_integer:
        raise TypeError(f"global_batch_size must be a whole number, not {value!r}")
    known = get_static_value(number)
    if known is None:
        return number
    samples = int(known)
    if samples < 0:
        raise ValueError(f"global_batch_size must be non-negative, not {samples}")
    return samples


__all__ = ["compute_average_loss", "scale_regularization_loss"]
