"""Notices about names that TensorFlow has deprecated: once each, by the logger ``allotment.tf.names.deprecation``."""

import logging

from allotment.devices.caller import find_caller

_logger = logging.getLogger("allotment.tf.names.deprecation")
_told: set[str] = set()


def deprecated(name: str, instead: str) -> None:
    """Say, the first time, that a call is deprecated and what to use."""
    if name in _told:
        return
    _told.add(name)
    caller = find_caller()
    _logger.warning(
        "From %s:%d: %s is deprecated and will be removed in a future version.\n"
        "Instructions for updating:\n%s",
        caller.file,
        caller.line,
        name,
        instead,
    )
