"""Placement logs: what is said, and where it goes.

One Python logger, ``allotment.placement``; programs and test tools may listen to it. Our own handler writes the
bare lines to ``sys.stderr``, at once, and is attached only while placement logging is on.
"""

import logging
import sys
from typing import Final, TextIO

from allotment.devices.context import context

logger: Final = logging.getLogger("allotment.placement")


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to what ``sys.stderr`` is at that moment, unless ``TF_CPP_MIN_LOG_LEVEL`` hides it."""

    def emit(self, record: logging.LogRecord) -> None:
        if context().settings.log_level == 0:
            self.stream = sys.stderr
            super().emit(record)


_handler: Final = _Stderr()


def switch(on: bool) -> None:
    """Attach our handler and let the lines through, or take both back."""
    if on:
        logger.setLevel(logging.INFO)
        logger.addHandler(_handler)
    else:
        logger.setLevel(logging.NOTSET)
        logger.removeHandler(_handler)


def executing(op: str, device: str) -> None:
    """Say that an operation runs on a device (placement, section 6.1)."""
    logger.info("Executing op %s in device %s", op, device)


#: Whether copies of inputs that operations bring along are logged, too.
shows_copies = False


def show_copies(enabled: bool) -> None:
    """Log copies of inputs from now on, or no more."""
    global shows_copies
    shows_copies = enabled


def copying(op: str, index: int, source: str, goal: str, nbytes: int) -> None:
    """Say that an input of an operation is copied to another device, whether placement is logged or not."""
    said(f"Copying input #{index} of op {op} from device {source} to device {goal}: {nbytes} bytes")


def copied(text: str) -> None:
    """Warn of a copy that the device policy wants to be told of, whether placement is logged or not."""
    logger.addHandler(_handler)
    try:
        logger.warning(text)
    finally:
        if logger.level == logging.NOTSET:
            logger.removeHandler(_handler)


def said(text: str) -> None:
    """Say something of a session's placement, whether eager placement is logged or not."""
    level, attached = logger.level, _handler in logger.handlers
    logger.setLevel(logging.INFO)
    logger.addHandler(_handler)
    try:
        logger.info("%s", text)
    finally:
        logger.setLevel(level)
        if not attached:
            logger.removeHandler(_handler)
