"""All GPUs at once: ``tf.config.gpu`` of TensorFlow 2.0's previews, also ``tf.gpu``.

On a machine without a GPU the calls are accepted and do nothing.
"""

from allotment.devices import per_process
from allotment.devices.context import context


def set_per_process_memory_growth(enabled: bool = True) -> None:
    """Ask that every GPU's memory is reserved step by step, not all at first use.

    Logical devices win over it.

    Raises:
        RuntimeError: The runtime is initialized, be the value the same or not.
    """
    context().change(per_process.set_process_growth, enabled)


def get_per_process_memory_growth() -> bool:
    """Return what ``set_per_process_memory_growth`` was told; off until then."""
    return context().state().configuration.process_growth


def set_per_process_memory_fraction(fraction: float) -> None:
    """Limit each GPU to a share of its whole memory.

    Args:
        fraction: Such as 0.4 of the memory, rounded down to whole bytes, of which a pool uses whole granules of
            256; 0 is TensorFlow's own rule. Above 1 the runtime cannot start on a GPU without unified memory.
            Together with logical devices it cannot, either.

    Raises:
        TypeError: Not a number.
        ValueError: Negative or not finite.
        RuntimeError: The runtime is initialized, be the value the same or not.
    """
    context().change(per_process.set_process_fraction, fraction)


def get_per_process_memory_fraction() -> float:
    """Return what ``set_per_process_memory_fraction`` was told; 0.0 until then."""
    return context().state().configuration.process_fraction


__all__ = [
    "get_per_process_memory_fraction",
    "get_per_process_memory_growth",
    "set_per_process_memory_fraction",
    "set_per_process_memory_growth",
]
