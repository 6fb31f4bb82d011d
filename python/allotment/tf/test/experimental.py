"""``tf.test.experimental``: device synchronization."""

from allotment.tf.dispatch import thread
from allotment.tf.names.missing_names import refuse_other_names


def sync_devices() -> None:
    """Wait for all devices. As ``tf.test.experimental.sync_devices``; returns at once, as execution is synchronous.

    Raises:
        RuntimeError: A graph is being built.
    """
    if thread.state.graph is not None:
        raise RuntimeError("sync_devices() must only be called in Eager mode, outside of graphs")


__all__ = ["sync_devices"]

refuse_other_names(__name__)
