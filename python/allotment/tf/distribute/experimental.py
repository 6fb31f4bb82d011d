"""Strategies and options with TensorFlow's older names. As ``tf.distribute.experimental``."""

from allotment.tf.distribute.central_storage import CentralStorageStrategy
from allotment.tf.distribute.multi_worker import (
    ExperimentalMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
)
from allotment.tf.distribute.processes.communication import CommunicationImplementation, CommunicationOptions
from allotment.tf.distribute.strategy import ValueContext
from allotment.tf.names.missing_names import refuse_other_names

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

refuse_other_names(__name__)
