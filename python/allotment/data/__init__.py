"""Data sets. As ``tf.data``."""

from allotment.data.cardinality import INFINITE as INFINITE_CARDINALITY
from allotment.data.cardinality import UNKNOWN as UNKNOWN_CARDINALITY
from allotment.data.dataset import AUTOTUNE, Dataset

__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset"]
