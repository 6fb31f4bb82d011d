"""A small Keras: layers, models, and training them on one device or on all of a strategy. As ``tf.keras``.

What is not there says what is.
"""

from allotment.keras import (
    activations,
    backend,
    callbacks,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    regularizers,
    utils,
)
from allotment.keras.engine.functional import Functional
from allotment.keras.engine.input_spec import InputSpec
from allotment.keras.engine.layer import Layer
from allotment.keras.engine.model import Model
from allotment.keras.engine.sequential import Sequential
from allotment.keras.engine.symbolic import KerasTensor
from allotment.keras.initializers import Initializer
from allotment.keras.layers.inputs import Input
from allotment.keras.losses import Loss
from allotment.keras.metrics import Metric
from allotment.keras.optimizers import Optimizer
from allotment.keras.regularizers import Regularizer
from allotment.missing_names import absent

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
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "optimizers",
    "regularizers",
    "utils",
]

__getattr__ = absent(__name__, __all__)
