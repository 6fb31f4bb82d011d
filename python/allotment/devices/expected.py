"""What to pass instead of a value that is no device."""

from typing import Any

from allotment.devices.caller import find_caller


def expected_device(what: str, value: Any, instead: str, *, of_many: str = "loop over it") -> str:
    """Say that the function that the program called takes one device, and what to do.

    Args:
        what: What the function takes, such as ``"PhysicalDevice"``.
        value: What it was given.
        instead: What to do about a value that holds no devices.
        of_many: What to do about one that does.
    """
    # Devices are tuples, too: named ones.
    many = isinstance(value, list | set | frozenset | dict) or type(value) is tuple
    kind = type(value).__name__
    return f"{find_caller().function} expects one {what}, got {kind}; {of_many if many else instead}"
