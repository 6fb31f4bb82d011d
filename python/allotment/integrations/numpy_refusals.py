"""Reports of pools that refused memory to NumPy's arrays: added as a note to the ``MemoryError`` that NumPy raises.

NumPy's error says how much memory an array needs, and has no room for what the pool says. The handler keeps the pool's
report, of the moment of the refusal and for its thread, until a caller takes it: ``add_report`` for an error that was
raised at the same line, where it leaves a ``use`` block, or where it is uncaught.
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
    """Add the report of the pool to NumPy's ``MemoryError``: this error, or the one that led to it.

    An error that was raised elsewhere than the array was to be made is left alone, and so is one with a report of
    its own.
    """
    for each in _with_causes(error):
        if isinstance(each, MemoryError) and not isinstance(each, OutOfMemoryError | OpError):
            refusal = ArrayMemory.take_refusal(_raised_at(each))
            if refusal is not None:
                each.add_note(report(refusal))
                return


def report(refusal: BaseException) -> str:
    """What a refusal says, with the name of the pool."""
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
    """Hooks for uncaught errors, in front of those that are there, while anything is installed.

    Each time they are set they are new ones, with the former hooks in them: a program may have put the last ones behind
    hooks of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._installed = 0
        self._undo = contextlib.ExitStack()

    def add(self) -> None:
        """Count one more that is installed."""
        with self._lock:
            self._installed += 1
            if self._installed == 1:
                self._undo.callback(_set_hook())
                self._undo.callback(_set_hook_of_threads())

    def remove(self) -> None:
        """Count one less. Where a program has set a hook of its own since, that stays."""
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

__all__ = ["add_report", "report", "uncaught"]
