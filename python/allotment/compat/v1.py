"""``tf.compat.v1``: what TensorFlow 2.21 has under this name."""

from allotment import config, debugging, errors, test
from allotment.device_spec import MutableDeviceSpec as DeviceSpec

__all__ = ["DeviceSpec", "config", "debugging", "errors", "test"]
