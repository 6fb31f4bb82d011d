"""What TensorFlow has as ``tf.data.experimental``."""

from allotment.data.cardinality import INFINITE as INFINITE_CARDINALITY
from allotment.data.cardinality import UNKNOWN as UNKNOWN_CARDINALITY
from allotment.data.dataset import AUTOTUNE, Dataset
from allotment.data.optional import Optional
from allotment.data.options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ServiceOptions,
    ThreadingOptions,
)
from allotment.tensor import EagerTensor


def cardinality(dataset: Dataset) -> EagerTensor:
    """Return the number of elements of a data set. As ``tf.data.experimental.cardinality``."""
    return dataset.cardinality()


__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "DistributeOptions",
    "ExternalStatePolicy",
    "OptimizationOptions",
    "Optional",
    "ServiceOptions",
    "ThreadingOptions",
    "cardinality",
]
