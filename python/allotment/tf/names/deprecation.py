"""Logs a notice at the first use of a deprecated name, through the logger ``allotment.tf.names.deprecation``."""

import logging

from allotment.devices.messages.call_site import find_caller

_logger = logging.getLogger("allotment.tf.names.deprecation")
#: The names that were reported, each with the object of the thread that did.
_reported: dict[str, object] = {}


def deprecated(name: str, instead: str) -> None:
    """Log, once per name, that a function is deprecated.

    Args:
        name: The deprecated function.
        instead: TensorFlow's instructions for updating.
    """
    mine = object()
    # One step: of threads that use the name at the same time one reports it.
    if _reported.setdefault(name, mine) is not mine:
        return
    caller = find_caller()
    _logger.warning(
        "From %s:%d: %s is deprecated and will be removed in a future version.\n"
        "Instructions for updating:\n%s",
        caller.file,
        caller.line,
        name,
        instead,
    )
