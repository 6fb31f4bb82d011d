"""Flags for soft placement and eager functions. Each may be set at any time.

Source: docs/spec/device-config-api.md, section 7.
"""

from allotment.devices.context import context
from allotment.tf.names.deprecation import deprecated


def get_soft_device_placement() -> bool:
    """Return whether an operation may run on another device if its device is missing; false by default.

    As ``tf.config.get_soft_device_placement``, whose default is true in eager mode.

    Raises:
        ValueError: Memory growth differs between GPUs: this getter, like others, checks all settings together.
        TypeError: The setter was given something other than a bool.
    """
    context().assemble()
    return context().soft_device_placement


def set_soft_device_placement(enabled: bool | None) -> None:
    """Choose whether an operation may run on another device if its device is missing.

    As ``tf.config.set_soft_device_placement``; applies to all later operations.

    Args:
        enabled: Whether other devices are allowed; ``None`` is false.

    Raises:
        TypeError: ``enabled`` is not a bool and the runtime is initialized; before that, the getter raises it.
    """
    context().store_flag("soft_placement", enabled)


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Store the flag for eager functions. As ``tf.config.run_functions_eagerly``.

    It has no effect: ``tf.function`` is always eager here.
    """
    context().functions_run_eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Return the flag that ``run_functions_eagerly`` stored; false by default."""
    return context().functions_run_eagerly


def experimental_run_functions_eagerly(run_eagerly: bool) -> None:
    """Store the flag for eager functions; deprecated in favour of ``run_functions_eagerly``."""
    deprecated(
        "experimental_run_functions_eagerly",
        "Use `tf.config.run_functions_eagerly` instead of the experimental version.",
    )
    run_functions_eagerly(run_eagerly)


def experimental_functions_run_eagerly() -> bool:
    """Return the flag for eager functions; deprecated in favour of ``functions_run_eagerly``."""
    deprecated(
        "experimental_functions_run_eagerly",
        "Use tf.config.functions_run_eagerly instead of the experimental version.",
    )
    return functions_run_eagerly()
