"""What TensorFlow may rewrite: ``tf.config.optimizer``. Kept; nothing is rewritten here."""

from typing import Any

from allotment.devices.context import context
from allotment.tf.names.deprecation import deprecated
from allotment.tf.names.missing_names import refuse_other_names


def get_jit() -> str:
    """Return ``"autoclustering"`` if it was set, else an empty text."""
    context().assemble()
    return "autoclustering" if context().jit else ""


def set_jit(enabled: bool | str) -> None:
    """Keep whether operations may be fused: ``"autoclustering"`` or ``True``; anything else is off."""
    if enabled is True:
        deprecated("set_jit(True)", "Use `autoclustering` instead of `True`.")
    context().jit = enabled in (True, "autoclustering")


def get_experimental_options() -> dict[str, bool | int]:
    """Return the options that were set; ``disable_model_pruning`` and ``disable_meta_optimizer`` always."""
    context().assemble()
    return context().optimizer_options


def set_experimental_options(options: dict[str, Any]) -> None:
    """Add options to those that were set; ``None`` takes one back, and names that are not known are ignored."""
    context().add_optimizer_options(options)


__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]

refuse_other_names(__name__)
