"""How copies of a variable on several devices belong together."""

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


__all__ = ["VariableAggregation", "VariableSynchronization"]
