"""How values of several replicas become one."""

import enum
from typing import Any

from allotment.tf.variables.aggregation import VariableAggregation


class ReduceOp(enum.Enum):
    """How values of several replicas become one. As ``tf.distribute.ReduceOp``."""

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


def of_aggregation(aggregation: VariableAggregation) -> ReduceOp:
    """How a variable's aggregation makes one value of several.

    Raises:
        ValueError: It does not: there is none, or the first replica's value is taken.
    """
    if aggregation is VariableAggregation.SUM:
        return ReduceOp.SUM
    if aggregation is VariableAggregation.MEAN:
        return ReduceOp.MEAN
    raise ValueError(
        f"Could not convert from `tf.VariableAggregation` {aggregation} to`tf.distribute.ReduceOp` type"
    )


__all__ = ["ReduceOp", "of_aggregation", "reduce_op_argument"]
