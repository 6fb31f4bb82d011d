"""Callbacks: objects whose methods ``fit``, ``evaluate`` and ``predict`` call. As ``keras.callbacks``."""

from allotment.tf.keras.callbacks.base import Callback, CallbackList
from allotment.tf.keras.callbacks.offered import (
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
)
from allotment.tf.names.missing_names import refuse_other_names

__all__ = ["Callback", "CallbackList", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler"]

refuse_other_names(__name__)
