"""``tf.device`` and ``tf.DeviceSpec``: device scopes and device names."""

from allotment.devices.device_scope import device
from allotment.devices.device_spec import DeviceSpec

__all__ = ["DeviceSpec", "device"]
