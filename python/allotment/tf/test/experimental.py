"""What TensorFlow has as ``tf.test.experimental``."""

from allotment.devices.placement import thread
from allotment.tf.names.missing_names import refuse_other_names


def sync_devices() -> None:
    """Wait for all devices. As ``tf.test.experimental.sync_devices``; an operation is done when it returns here.

    Raises:
        RuntimeError: A graph is the default.
    """
    if thread.state.graph is not None:
        raise RuntimeError("sync_devices() must only be called in Eager mode, outside of graphs")


__all__ = ["sync_devices"]

refuse_other_names(__name__)
