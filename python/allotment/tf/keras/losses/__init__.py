"""Losses: measures of the distance of predictions from labels. As ``keras.losses``."""

from allotment.tf.keras.losses.functions import (
    binary_crossentropy,
    categorical_crossentropy,
    huber,
    mean_absolute_error,
    mean_squared_error,
    sparse_categorical_crossentropy,
)
from allotment.tf.keras.losses.lookup import get
from allotment.tf.keras.losses.loss import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    Huber,
    Loss,
    MeanAbsoluteError,
    MeanSquaredError,
    SparseCategoricalCrossentropy,
)
from allotment.tf.keras.losses.reduction import Reduction
from allotment.tf.names.missing_names import refuse_other_names

mae = MAE = mean_absolute_error
mse = MSE = mean_squared_error

__all__ = [
    "MAE",
    "MSE",
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "Huber",
    "Loss",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Reduction",
    "SparseCategoricalCrossentropy",
    "binary_crossentropy",
    "categorical_crossentropy",
    "get",
    "huber",
    "mae",
    "mean_absolute_error",
    "mean_squared_error",
    "mse",
    "sparse_categorical_crossentropy",
]

refuse_other_names(__name__)
