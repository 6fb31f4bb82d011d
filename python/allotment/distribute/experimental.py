"""What TensorFlow has as ``tf.distribute.experimental``."""

from allotment.distribute.central_storage import CentralStorageStrategy
from allotment.distribute.communication import CommunicationImplementation, CommunicationOptions
from allotment.distribute.multi_worker import (
    ExperimentalMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
)
from allotment.distribute.strategy import ValueContext

#: TensorFlow's older name.
CollectiveCommunication = CommunicationImplementation

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "ValueContext",
]
