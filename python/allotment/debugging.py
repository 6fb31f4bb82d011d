"""Seeing what happens: ``tf.debugging``."""

from allotment import placement_log
from allotment.config._functions import as_stored
from allotment.devices.context import context


def get_log_device_placement() -> bool:
    """Return whether each operation logs where it ran; off until it is set.

    As ``tf.debugging.get_log_device_placement``.

    Raises:
        ValueError: Memory growth differs between GPUs, as in every getter that puts the settings together.
        TypeError: Something else than a bool was set.
    """
    context().assemble()
    return context().log_device_placement


def set_log_device_placement(enabled: bool | None) -> None:
    """Say whether each operation logs where it ran, from now on. ``None`` is off.

    As ``tf.debugging.set_log_device_placement``, but it holds at any time, not only before the first
    operation.

    Raises:
        TypeError: Not a bool, and the runtime is initialized; before that, the getter raises it.
    """
    context().log_placement = as_stored(enabled)
    placement_log.switch(bool(enabled))


__all__ = ["get_log_device_placement", "set_log_device_placement"]
