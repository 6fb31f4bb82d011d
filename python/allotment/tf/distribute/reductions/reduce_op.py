"""The reductions of replicas' values, sum and mean, and their names in arguments."""

import enum
from typing import Any

from allotment.tf.variables.aggregation import VariableAggregation


class ReduceOp(enum.Enum):
    """The reduction that makes one value of those of several replicas. As ``tf.distribute.ReduceOp``."""

    SUM = "SUM"
    MEAN = "MEAN"


def reduce_op_argument(reduce_op: Any) -> ReduceOp:
    """Read a ``reduce_op=`` argument: one of ``ReduceOp``, or its name in any case.

    Raises:
        ValueError: Another text.
        TypeError: Neither.
    """
    if isinstance(reduce_op, ReduceOp):
        return reduce_op
    if isinstance(reduce_op, str):
        return ReduceOp(reduce_op.upper())
    raise TypeError(
        f"reduce_op must be 'SUM', 'MEAN' or a tf.distribute.ReduceOp, not {reduce_op!r} of type "
        f"{type(reduce_op).__name__}"
    )


def aggregation_op(aggregation: VariableAggregation) -> ReduceOp:
    """Return the reduction of a variable's aggregation.

    Raises:
        ValueError: The aggregation is ``NONE`` or ``ONLY_FIRST_REPLICA``.
    """
    if aggregation is VariableAggregation.SUM:
        return ReduceOp.SUM
    if aggregation is VariableAggregation.MEAN:
        return ReduceOp.MEAN
    raise ValueError(
        f"Could not convert from `tf.VariableAggregation` {aggregation} to`tf.distribute.ReduceOp` type"
    )


__all__ = ["ReduceOp", "aggregation_op", "reduce_op_argument"]
