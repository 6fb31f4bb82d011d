"""Device scopes and device names. As ``tf.device`` and ``tf.DeviceSpec``."""

from allotment.devices.device_spec import DeviceSpec
from allotment.devices.placement import device

__all__ = ["DeviceSpec", "device"]
