"""``tf.compat.v1.train``: ``tf.train`` with what TensorFlow 1 had beside."""

from typing import Any, Final

from allotment.tf import train
from allotment.tf.names.missing_names import missing_name_error
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


def __getattr__(name: str) -> Any:
    if name in _OWN:
        return _OWN[name]
    if name in train.__all__:
        return getattr(train, name)
    raise missing_name_error("allotment.tf.compat.v1.train", name, __dir__())


def __dir__() -> list[str]:
    return sorted({*train.__all__, *_OWN})
