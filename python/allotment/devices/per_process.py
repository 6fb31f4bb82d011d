"""Growth and share of memory of all GPUs at once: ``config.gpu`` (device-config API, section 9.1)."""

import math
import numbers
from typing import Any

from allotment.devices.states import State

# Raised for a value that is in force, too: so it was in the release that had these calls.
_REFUSAL = "GPU options must be set at program startup"


def set_process_growth(state: State, enabled: Any) -> None:
    """Switch growth of every GPU; logical devices win over it. Without a GPU it does nothing.

    Raises:
        RuntimeError: The runtime is ready.
    """
    configuration = state.changeable(_REFUSAL)
    configuration.process_growth = bool(enabled)
    for device in configuration.growth:
        configuration.growth[device] = bool(enabled)


def set_process_fraction(state: State, fraction: Any) -> None:
    """Limit every GPU to a share of its whole memory; 0 is TensorFlow's own rule.

    Raises:
        TypeError: Not a number.
        ValueError: Negative or not finite.
        RuntimeError: The runtime is ready.
    """
    if isinstance(fraction, bool) or not isinstance(fraction, numbers.Real):
        raise TypeError(f"fraction must be a number, not {fraction!r}")
    if not math.isfinite(fraction) or fraction < 0:
        raise ValueError(f"fraction must be 0 (TensorFlow's rule) or more, such as 0.4, not {fraction!r}")
    state.changeable(_REFUSAL).process_fraction = float(fraction)
