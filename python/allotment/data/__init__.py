"""Data sets. As ``tf.data``."""

from allotment.data import experimental
from allotment.data.cardinality import INFINITE as INFINITE_CARDINALITY
from allotment.data.cardinality import UNKNOWN as UNKNOWN_CARDINALITY
from allotment.data.dataset import AUTOTUNE, Dataset
from allotment.data.iterators import ElementIterator as Iterator
from allotment.data.options import Options, ThreadingOptions

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
