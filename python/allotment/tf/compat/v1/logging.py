"""``tf.compat.v1.logging`` and ``tf.get_logger``: Python's logger ``tensorflow``, under TensorFlow 1's names."""

import logging
import sys
from typing import Any, Final

DEBUG: Final = logging.DEBUG
INFO: Final = logging.INFO
WARN: Final = logging.WARNING
ERROR: Final = logging.ERROR
FATAL: Final = logging.CRITICAL


def get_logger() -> logging.Logger:
    """Return the logger ``tensorflow``. As ``tf.get_logger``.

    The first call gives it the level ``WARN`` unless it has one, and a handler that writes to ``sys.stderr`` unless
    the program has configured Python's logging.
    """
    logger = logging.getLogger("tensorflow")
    if logger.level == logging.NOTSET:
        logger.setLevel(WARN)
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
        logger.addHandler(handler)
    return logger


def log(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log a message at a level."""
    get_logger().log(level, msg, *args, **kwargs)


def debug(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log a message at the level ``DEBUG``."""
    get_logger().debug(msg, *args, **kwargs)


def info(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log a message at the level ``INFO``."""
    get_logger().info(msg, *args, **kwargs)


def warning(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log a message at the level ``WARN``."""
    get_logger().warning(msg, *args, **kwargs)


warn = warning


def error(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log a message at the level ``ERROR``."""
    get_logger().error(msg, *args, **kwargs)


def fatal(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log a message at the level ``FATAL``. The program goes on."""
    get_logger().fatal(msg, *args, **kwargs)


def get_verbosity() -> int:
    """Return the level below which messages are dropped."""
    return get_logger().getEffectiveLevel()


def set_verbosity(v: int | str) -> None:
    """Set the level below which messages are dropped.

    Raises:
        TypeError: Neither a number nor a name.
        ValueError: No name of a level.
    """
    get_logger().setLevel(v)


def flush() -> None:
    """Let the handlers write what they hold."""
    for handler in get_logger().handlers:
        handler.flush()


__all__ = [
    "DEBUG",
    "ERROR",
    "FATAL",
    "INFO",
    "WARN",
    "debug",
    "error",
    "fatal",
    "flush",
    "get_logger",
    "get_verbosity",
    "info",
    "log",
    "set_verbosity",
    "warn",
    "warning",
]
