"""Sizes of TensorFlow's thread pools. Kept and checked, nothing more: NumPy has threads of its own."""

import operator
from typing import Any, Literal

from allotment.devices.configuration import Change, ConfigurationState
from allotment.text import show_value

Which = Literal["intra", "inter"]

#: What was set, by the kind of parallelism; ``None`` until something is.
Threads = dict[Which, Any]

_REFUSALS: dict[Which, str] = {
    "intra": "Intra op parallelism cannot be modified after initialization.",
    "inter": "Inter op parallelism cannot be modified after initialization.",
}


def set_threads(threads: Threads, state: ConfigurationState | None, which: Which, count: Any) -> None:
    """Store a number of threads; 0 is TensorFlow's choice, and not the same as never set.

    Raises:
        RuntimeError: The runtime is ready and has another number.
    """
    if threads.get(which) == count:
        return
    if state is not None:
        state.changeable(
            _REFUSALS[which],
            Change(f"Threads of {which} op parallelism", show_value(threads.get(which)), show_value(count)),
        )
    threads[which] = count


def thread_count(threads: Threads, which: Which) -> int:
    """What was stored, 0 if nothing was.

    Raises:
        TypeError: It is no whole number.
        ValueError: It takes more than 32 bits.
    """
    count = threads.get(which)
    if count is None:
        return 0
    if isinstance(count, bool):
        raise TypeError(
            f"Field tensorflow.ConfigProto.{which}_op_parallelism_threads: Expected an int, got a boolean."
        )
    number = operator.index(count)
    if not -(1 << 31) <= number < 1 << 31:
        raise ValueError(f"Value out of range: {show_value(number)}")
    return number


def check_threads(threads: Threads) -> None:
    """Check what was stored without a look.

    Raises:
        TypeError: It is no whole number.
        ValueError: It takes more than 32 bits.
    """
    thread_count(threads, "intra")
    thread_count(threads, "inter")
