"""Growth and share of memory of all GPUs at once: ``config.gpu`` (device-config API, section 9.1)."""

import math
import numbers
from typing import Any

from allotment._core import show_value
from allotment.devices.configuration import Change, ConfigurationState

# Raised even for the present value, as in the release that had these calls.
_REFUSAL = "GPU options must be set at program startup"


def set_process_growth(state: ConfigurationState, enabled: Any) -> None:
    """Set the growth of every GPU; configured logical devices override it. Without a GPU it does nothing.

    Raises:
        RuntimeError: The runtime is ready.
    """
    change = Change("Memory growth of all GPUs", str(state.configuration.process_growth), str(bool(enabled)))
    configuration = state.changeable(_REFUSAL, change)
    configuration.process_growth = bool(enabled)
    for device in configuration.growth:
        configuration.growth[device] = bool(enabled)


def set_process_fraction(state: ConfigurationState, fraction: Any) -> None:
    """Limit every GPU to a share of its whole memory; 0 is TensorFlow's own rule.

    Raises:
        TypeError: Not a number.
        ValueError: Negative or not finite.
        RuntimeError: The runtime is ready.
    """
    share = read_fraction(fraction, "fraction")
    change = Change("Share of memory of all GPUs", str(state.configuration.process_fraction), str(share))
    state.changeable(_REFUSAL, change).process_fraction = share


def read_fraction(fraction: Any, field: str) -> float:
    """Read a share of a GPU's memory. A share above 1 is for GPUs with unified memory.

    Raises:
        TypeError: Not a number.
        ValueError: Negative or not finite.
    """
    if isinstance(fraction, bool) or not isinstance(fraction, numbers.Real):
        raise TypeError(f"{field} must be a number, not {show_value(fraction)}")
    try:
        share = float(fraction)
    except OverflowError:
        share = math.inf
    if not math.isfinite(share) or share < 0:
        raise ValueError(
            f"{field} must be 0 (TensorFlow's rule), or above 0 and up to 1, such as 0.4, not {show_value(fraction)}"
        )
    return share
