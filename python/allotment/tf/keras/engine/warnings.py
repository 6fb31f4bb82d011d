"""Warnings that name the line of the program that asked for something."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from allotment.devices.messages.call_site import Caller, find_caller


class _Asked(threading.local):
    """The line of the program on behalf of which a thread works."""

    #: ``None``: the line is found among the thread's own calls.
    by: Caller | None = None


_asked = _Asked()


@contextmanager
def on_behalf_of(caller: Caller) -> Iterator[None]:
    """Let what this thread does in a ``with`` block have been asked for by a call in another one."""
    _asked.by = caller
    try:
        yield
    finally:
        _asked.by = None


def warn(text: str) -> None:
    """Warn at the line of the program that called into this package."""
    caller = _asked.by or find_caller()
    warnings.warn_explicit(text, UserWarning, caller.file, caller.line)


__all__ = ["on_behalf_of", "warn"]
