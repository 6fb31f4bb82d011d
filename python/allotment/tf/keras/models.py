"""Layers that are trained. As ``keras.models``, those that are offered."""

from allotment.tf.keras.engine.functional import Functional
from allotment.tf.keras.engine.model import Model
from allotment.tf.keras.engine.sequential import Sequential
from allotment.tf.names.missing_names import absent

__all__ = ["Functional", "Model", "Sequential"]

__getattr__ = absent(__name__, __all__)
