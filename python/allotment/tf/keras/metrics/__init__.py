"""Metrics of models over all batches since the last reset. As ``keras.metrics``."""

from allotment.tf.keras.metrics.lookup import get
from allotment.tf.keras.metrics.means import (
    Accuracy,
    BinaryAccuracy,
    BinaryCrossentropy,
    CategoricalAccuracy,
    CategoricalCrossentropy,
    MeanAbsoluteError,
    MeanSquaredError,
    RootMeanSquaredError,
    SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy,
)
from allotment.tf.keras.metrics.metric import Mean, MeanMetricWrapper, Metric, Sum
from allotment.tf.names.missing_names import refuse_other_names

__all__ = [
    "Accuracy",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "Mean",
    "MeanAbsoluteError",
    "MeanMetricWrapper",
    "MeanSquaredError",
    "Metric",
    "RootMeanSquaredError",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "Sum",
    "get",
]

refuse_other_names(__name__)
