"""A small Keras: layers, models, and training them on one device or on all of a strategy. As ``tf.keras``.

What is not there says what is.
"""

from allotment.tf.keras import (
    activations,
    backend,
    callbacks,
    constraints,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    regularizers,
    utils,
)
from allotment.tf.keras.engine.input_spec import InputSpec
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.engine.symbolic import KerasTensor
from allotment.tf.keras.initializers import Initializer
from allotment.tf.keras.layers.inputs import Input
from allotment.tf.keras.losses import Loss
from allotment.tf.keras.metrics import Metric
from allotment.tf.keras.models.functional import Functional
from allotment.tf.keras.models.model import Model
from allotment.tf.keras.models.sequential import Sequential
from allotment.tf.keras.optimizers import Optimizer
from allotment.tf.keras.regularizers import Regularizer
from allotment.tf.names.missing_names import refuse_other_names

__all__ = [
    "Functional",
    "Initializer",
    "Input",
    "InputSpec",
    "KerasTensor",
    "Layer",
    "Loss",
    "Metric",
    "Model",
    "Optimizer",
    "Regularizer",
    "Sequential",
    "activations",
    "backend",
    "callbacks",
    "constraints",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "optimizers",
    "regularizers",
    "utils",
]

refuse_other_names(__name__)
