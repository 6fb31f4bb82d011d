"""``tf.device`` and ``tf.DeviceSpec``: device scopes and device names."""

from allotment.devices.device_spec import DeviceSpec
from allotment.devices.placement import device

__all__ = ["DeviceSpec", "device"]
