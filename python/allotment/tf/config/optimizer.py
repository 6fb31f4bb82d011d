"""``tf.config.optimizer``: options of TensorFlow's graph optimizer, which are stored but have no effect."""

from typing import Any

from allotment.devices.context import context
from allotment.tf.names.deprecation import deprecated
from allotment.tf.names.missing_names import refuse_other_names


def get_jit() -> str:
    """Return the stored option for just-in-time compilation: ``"autoclustering"`` or an empty text."""
    context().assemble()
    return "autoclustering" if context().jit else ""


def set_jit(enabled: bool | str) -> None:
    """Store the option for just-in-time compilation: ``"autoclustering"`` or ``True``; any other value is off."""
    if enabled is True:
        deprecated("set_jit(True)", "Use `autoclustering` instead of `True`.")
    context().jit = enabled in (True, "autoclustering")


def get_experimental_options() -> dict[str, bool | int]:
    """Return the stored options; ``disable_model_pruning`` and ``disable_meta_optimizer`` are always included."""
    context().assemble()
    return context().optimizer_options


def set_experimental_options(options: dict[str, Any]) -> None:
    """Add options to the stored ones; the value ``None`` removes an option, and unknown names are ignored."""
    context().add_optimizer_options(options)


__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]

refuse_other_names(__name__)
