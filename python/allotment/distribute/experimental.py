"""What TensorFlow has as ``tf.distribute.experimental``."""

from allotment.distribute.communication import CommunicationImplementation, CommunicationOptions
from allotment.distribute.strategy import ValueContext

#: TensorFlow's older name.
CollectiveCommunication = CommunicationImplementation

__all__ = ["CollectiveCommunication", "CommunicationImplementation", "CommunicationOptions", "ValueContext"]
