"""Options and constants of data sets. As ``tf.data.experimental``."""

from allotment.tf.data.cardinality import INFINITE as INFINITE_CARDINALITY
from allotment.tf.data.cardinality import UNKNOWN as UNKNOWN_CARDINALITY
from allotment.tf.data.dataset import AUTOTUNE, Dataset
from allotment.tf.data.optional import Optional
from allotment.tf.data.options import (
    AutoShardPolicy,
    DistributeOptions,
    ThreadingOptions,
)
from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.tensors.tensor import EagerTensor


def cardinality(dataset: Dataset) -> EagerTensor:
    """Return the number of elements of a data set. As ``tf.data.experimental.cardinality``."""
    return dataset.cardinality()


__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "DistributeOptions",
    "Optional",
    "ThreadingOptions",
    "cardinality",
]

refuse_other_names(__name__)
