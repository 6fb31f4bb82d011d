"""Sizes of TensorFlow's thread pools. They are kept and checked and have no effect: NumPy has its own threads."""

import operator
from typing import Any, Literal

from allotment._core import show_value
from allotment.devices.configuration import Change, ConfigurationState

Which = Literal["intra", "inter"]

#: Numbers of threads by the kind of parallelism; a kind that is absent was never set.
Threads = dict[Which, Any]

_REFUSALS: dict[Which, str] = {
    "intra": "Intra op parallelism cannot be modified after initialization.",
    "inter": "Inter op parallelism cannot be modified after initialization.",
}


def set_threads(threads: Threads, state: ConfigurationState | None, which: Which, count: Any) -> None:
    """Store a number of threads; 0 lets TensorFlow choose, and differs from never set.

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
    """Return the stored number of threads, 0 if there is none.

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
    """Check the numbers of threads, which the setter stores unchecked.

    Raises:
        TypeError: It is no whole number.
        ValueError: It takes more than 32 bits.
    """
    thread_count(threads, "intra")
    thread_count(threads, "inter")
