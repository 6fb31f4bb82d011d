"""``tf.compat.v2``: the same objects as the package's own."""

from allotment import config, debugging, errors, test
from allotment.device_spec import DeviceSpec

__all__ = ["DeviceSpec", "config", "debugging", "errors", "test"]
