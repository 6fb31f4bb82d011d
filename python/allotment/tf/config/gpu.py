"""``tf.config.gpu`` of TensorFlow 2.0's previews, also ``tf.gpu``: memory settings for all GPUs of the process.

The calls have no effect on a machine without a GPU.
Source: docs/spec/device-config-api.md, section 9.
"""

from allotment.devices.context import context
from allotment.devices.limits import all_gpus
from allotment.tf.names.missing_names import refuse_other_names


def set_per_process_memory_growth(enabled: bool = True) -> None:
    """Choose whether the pools of all GPUs grow step by step or reserve their limits at first use.

    Logical devices override the setting.

    Raises:
        RuntimeError: The runtime is initialized, even with the same value.
    """
    context().change(all_gpus.set_process_growth, enabled)


def get_per_process_memory_growth() -> bool:
    """Return the value of ``set_per_process_memory_growth``; false by default."""
    return context().state().configuration.process_growth


def set_per_process_memory_fraction(fraction: float) -> None:
    """Limit the pool of each GPU to a share of the GPU's memory.

    Args:
        fraction: The share, such as 0.4. The product is rounded down to whole bytes, of which a pool uses multiples of
            256. 0 selects TensorFlow's default limit. The runtime cannot be initialized with a value above 1 on a
            GPU without unified memory, nor with logical devices.

    Raises:
        TypeError: ``fraction`` is not a number.
        ValueError: ``fraction`` is negative or not finite.
        RuntimeError: The runtime is initialized, even with the same value.
    """
    context().change(all_gpus.set_process_fraction, fraction)


def get_per_process_memory_fraction() -> float:
    """Return the value of ``set_per_process_memory_fraction``; 0.0 by default."""
    return context().state().configuration.process_fraction


__all__ = [
    "get_per_process_memory_fraction",
    "get_per_process_memory_growth",
    "set_per_process_memory_fraction",
    "set_per_process_memory_growth",
]

refuse_other_names(__name__)
