"""Warnings that name the line of the program that asked for something."""

import warnings

from allotment.devices.caller import find_caller


def warn(text: str) -> None:
    """Warn at the line of the program that called into this package."""
    caller = find_caller()
    warnings.warn_explicit(text, UserWarning, caller.file, caller.line)


__all__ = ["warn"]
