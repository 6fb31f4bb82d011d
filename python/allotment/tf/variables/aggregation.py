"""Options for synchronizing the copies of a variable and for adding up gradients."""

import enum


class VariableSynchronization(enum.Enum):
    """When the copies of a variable on several devices are synchronized. As ``tf.VariableSynchronization``."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """The rule that combines values of several replicas when they are assigned. As ``tf.VariableAggregation``."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class AggregationMethod:
    """The rule that adds up several gradients of one tensor; it has no effect here. As ``tf.AggregationMethod``."""

    ADD_N = 0
    DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


__all__ = ["AggregationMethod", "VariableAggregation", "VariableSynchronization"]
