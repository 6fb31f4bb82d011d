"""Adds a pool's report to the ``MemoryError`` that NumPy raises when the pool refuses memory for an array.

NumPy's error contains only the size of the array. The memory handler keeps the pool's report for the thread until
``add_report`` takes it for an error that was raised at the same source line: when the error leaves a ``use`` block, or
when it is uncaught.
"""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final

from allotment._core import ArrayMemory, OutOfMemoryError
from allotment.errors import OpError


def add_report(error: BaseException | None) -> None:
    """Add the pool's report as a note to NumPy's ``MemoryError``: to ``error`` itself or to one of its causes.

    An error is unchanged if it was raised at another line than the refusal, or has a report of its own.
    """
    for each in _with_causes(error):
        if isinstance(each, MemoryError) and not isinstance(each, OutOfMemoryError | OpError):
            refusal = ArrayMemory.take_refusal(_raised_at(each))
            if refusal is not None:
                each.add_note(refusal_text(refusal))
                return


def refusal_text(refusal: BaseException) -> str:
    """Return the text of a pool's refusal, preceded by the pool's name."""
    if isinstance(refusal, OutOfMemoryError):
        pool: str = refusal.pool  # type: ignore[attr-defined]
        return f"pool {pool!r}: {refusal}"
    return str(refusal)


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _raised_at(error: BaseException) -> tuple[str, int] | None:
    trace = error.__traceback__
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename, trace.tb_lineno


class _UncaughtErrors:
    """Hooks that add the pool's report to uncaught errors while at least one memory handler is installed.

    Each installation creates new hooks that call the former ones, because a program may have wrapped the last ones in
    hooks of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._installed = 0
        self._undo = contextlib.ExitStack()

    def add(self) -> None:
        """Count one more installed handler; set the hooks at the first."""
        with self._lock:
            self._installed += 1
            if self._installed == 1:
                self._undo.callback(_set_hook())
                self._undo.callback(_set_hook_of_threads())

    def remove(self) -> None:
        """Count one installed handler less; remove the hooks at the last, unless a program has replaced them."""
        with self._lock:
            self._installed -= 1
            if self._installed == 0:
                self._undo.close()


def _set_hook() -> Callable[[], None]:
    former = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        add_report(value)
        former(kind, value, trace)

    def undo() -> None:
        if sys.excepthook is hook:
            sys.excepthook = former

    sys.excepthook = hook
    return undo


def _set_hook_of_threads() -> Callable[[], None]:
    former = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        add_report(args.exc_value)
        former(args)

    def undo() -> None:
        if threading.excepthook is hook:
            threading.excepthook = former

    threading.excepthook = hook
    return undo


uncaught: Final = _UncaughtErrors()

__all__ = ["add_report", "refusal_text", "uncaught"]
