"""Layers that are trained. As ``keras.models``, those that are offered."""

from allotment.keras.engine.functional import Functional
from allotment.keras.engine.model import Model
from allotment.keras.engine.sequential import Sequential
from allotment.missing_names import absent

__all__ = ["Functional", "Model", "Sequential"]

__getattr__ = absent(__name__, __all__)
