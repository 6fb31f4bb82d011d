"""The placement log: one line for each operation and its device, and where the lines go.

They go to one Python logger, ``allotment.placement``, to which programs and test tools may add handlers. Our own
handler writes the bare lines to ``sys.stderr``, unbuffered, and is attached only while placement logging is on.

Functions that change the log, or turn it on for a line, hold the lock of our handler: it is re-entrant, and ``logging``
renews it in forked children.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from allotment.devices.context import context

logger: Final = logging.getLogger("allotment.placement")


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to the present ``sys.stderr``, unless ``TF_CPP_MIN_LOG_LEVEL`` hides the lines."""

    def emit(self, record: logging.LogRecord) -> None:
        if context().settings.log_level == 0:
            self.stream = sys.stderr
            super().emit(record)


_handler: Final = _Stderr()


@contextmanager
def _locked() -> Iterator[None]:
    _handler.acquire()
    try:
        yield
    finally:
        _handler.release()


def set_enabled(on: bool) -> None:
    """Turn the placement log on, with our handler, or off."""
    with _locked():
        if on:
            logger.setLevel(logging.INFO)
            logger.addHandler(_handler)
        else:
            logger.setLevel(logging.NOTSET)
            logger.removeHandler(_handler)


def log_execution(op: str, device: str) -> None:
    """Log that an operation runs on a device (placement, section 6.1)."""
    logger.info("Executing op %s in device %s", op, device)


#: Whether copies of operations' inputs between devices are logged, too.
logs_copies = False


def set_logs_copies(enabled: bool) -> None:
    """Turn the logging of copies on or off."""
    global logs_copies
    logs_copies = enabled


def log_copy(op: str, index: int, source: str, goal: str, nbytes: int) -> None:
    """Log that an operation's input is copied to another device, even while the placement log is off."""
    log_line(f"Copying input #{index} of op {op} from device {source} to device {goal}: {nbytes} bytes")


def log_result_copy(op: str, source: str, goal: str, nbytes: int, reason: str) -> None:
    """Log that a result of an operation that computed on the host is copied to its device."""
    log_line(f"Copying result of op {op} from device {source} to device {goal}: {nbytes} bytes ({reason})")


def warn_of_copy(text: str) -> None:
    """Warn of a copy that the device policy ``"warn"`` reports, even while the placement log is off."""
    with _locked():
        logger.addHandler(_handler)
        try:
            logger.warning(text)
        finally:
            if logger.level == logging.NOTSET:
                logger.removeHandler(_handler)


def log_line(text: str) -> None:
    """Log a line about a session's placement, even while the placement log is off."""
    with _locked(), preserved():
        set_enabled(True)
        logger.info("%s", text)


@contextmanager
def preserved() -> Iterator[None]:
    """Restore the level of the log, our handler and the logging of copies at the end of a ``with`` block."""
    with _locked():
        level, attached, copies = logger.level, _handler in logger.handlers, logs_copies
    try:
        yield
    finally:
        with _locked():
            set_enabled(attached)
            logger.setLevel(level)
            set_logs_copies(copies)
