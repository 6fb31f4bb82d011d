"""``tf.compat.v1.train``: ``tf.train`` with further names of TensorFlow 1."""

from typing import Final

from allotment.tf import train
from allotment.tf.compat.functions.namespace import extend_namespace
from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.training.checkpoint_state import (
    checkpoint_exists,
    remove_checkpoint,
    update_checkpoint_state,
)
from allotment.tf.training.device_setter import replica_device_setter
from allotment.tf.training.saver import Saver

_OWN: Final = {
    "Saver": Saver,
    "checkpoint_exists": checkpoint_exists,
    "remove_checkpoint": remove_checkpoint,
    "replica_device_setter": replica_device_setter,
    "update_checkpoint_state": update_checkpoint_state,
}

__getattr__, __dir__ = extend_namespace(__name__, train, _OWN)

refuse_other_names(__name__)
