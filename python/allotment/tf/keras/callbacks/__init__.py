"""Callbacks: objects whose methods ``fit``, ``evaluate`` and ``predict`` call. As ``keras.callbacks``."""

from allotment.tf.keras.callbacks.base import Callback, CallbackList
from allotment.tf.keras.callbacks.offered import (
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
)
from allotment.tf.names.missing_names import module_getattr

__all__ = ["Callback", "CallbackList", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler"]

__getattr__ = module_getattr(__name__, __all__)
