"""Data sets. As ``tf.data``."""

from allotment.tf.data import experimental
from allotment.tf.data.cardinality import INFINITE as INFINITE_CARDINALITY
from allotment.tf.data.cardinality import UNKNOWN as UNKNOWN_CARDINALITY
from allotment.tf.data.dataset import AUTOTUNE, Dataset
from allotment.tf.data.iterators import ElementIterator as Iterator
from allotment.tf.data.options import Options, ThreadingOptions
from allotment.tf.names.missing_names import refuse_other_names

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "Iterator",
    "Options",
    "ThreadingOptions",
    "experimental",
]

refuse_other_names(__name__)
