"""How several values become one: those of a variable on several devices, and gradients of one tensor."""

import enum


class VariableSynchronization(enum.Enum):
    """When copies of a variable on several devices are made equal. As ``tf.VariableSynchronization``."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How values from several replicas become one. As ``tf.VariableAggregation``."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class AggregationMethod:
    """How gradients of one tensor are added up: no value makes a difference here. As ``tf.AggregationMethod``."""

    ADD_N = 0
    DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


__all__ = ["AggregationMethod", "VariableAggregation", "VariableSynchronization"]
