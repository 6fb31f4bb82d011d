"""Models: layers with methods for training. As ``keras.models``."""

from allotment.tf.keras.models.functional import Functional
from allotment.tf.keras.models.model import Model
from allotment.tf.keras.models.sequential import Sequential
from allotment.tf.names.missing_names import refuse_other_names

__all__ = ["Functional", "Model", "Sequential"]

refuse_other_names(__name__)
