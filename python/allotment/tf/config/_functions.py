"""Flags of placement and of functions. Each may be set at any time."""

from allotment.devices.context import context
from allotment.tf.names.deprecation import deprecated


def get_soft_device_placement() -> bool:
    """Return whether an operation may run elsewhere when its device is missing; off until it is set.

    As ``tf.config.get_soft_device_placement``, except that not set means off, also while executing eagerly.

    Raises:
        ValueError: Memory growth differs between GPUs, as in every getter that puts the settings together.
        TypeError: Something else than a bool was set.
    """
    context().assemble()
    return context().soft_device_placement


def set_soft_device_placement(enabled: bool | None) -> None:
    """Say whether an operation may run elsewhere when its device is missing.

    As ``tf.config.set_soft_device_placement``; holds for every operation from now on. ``None`` is off.

    Raises:
        TypeError: Neither true nor false, and the runtime is initialized; else the getter raises it.
    """
    context().store_flag("soft_placement", enabled)


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Keep a flag that TensorFlow has for its compiled functions. As ``tf.config.run_functions_eagerly``."""
    context().functions_run_eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Return what ``run_functions_eagerly`` was told; off until then."""
    return context().functions_run_eagerly


def experimental_run_functions_eagerly(run_eagerly: bool) -> None:
    """Call ``run_functions_eagerly``; deprecated."""
    deprecated(
        "experimental_run_functions_eagerly",
        "Use `tf.config.run_functions_eagerly` instead of the experimental version.",
    )
    run_functions_eagerly(run_eagerly)


def experimental_functions_run_eagerly() -> bool:
    """Call ``functions_run_eagerly``; deprecated."""
    deprecated(
        "experimental_functions_run_eagerly",
        "Use tf.config.functions_run_eagerly instead of the experimental version.",
    )
    return functions_run_eagerly()
