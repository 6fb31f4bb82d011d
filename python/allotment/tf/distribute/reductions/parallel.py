"""Functions that run in parallel on the threads of replicas that wait for a reduction."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

#: Runs functions in turn on several threads and returns their results.
Helpers = Callable[[Sequence[Callable[[], Any]]], list[Any]]


class _Thread(threading.local):
    helpers: Helpers | None = None


_thread: Final = _Thread()


@contextmanager
def use_helpers(helpers: Helpers) -> Iterator[None]:
    """Let ``run_parallel`` of this thread run functions by ``helpers`` in a ``with`` block."""
    outer, _thread.helpers = _thread.helpers, helpers
    try:
        yield
    finally:
        _thread.helpers = outer


def run_parallel(functions: Sequence[Callable[[], Any]], nbytes: int) -> list[Any]:
    """Call functions and return their results; in parallel if this thread has helpers and the work is large enough.

    Args:
        functions: They must not wait for each other.
        nbytes: The number of bytes that all of them move.

    Raises:
        BaseException: The error of the first function, in order, that raised one.
    """
    if _thread.helpers is None or nbytes < _PARALLEL_BYTES or len(functions) < 2:
        return [function() for function in functions]
    return _thread.helpers(functions)


#: Moving fewer bytes takes less time than waking a thread.
_PARALLEL_BYTES: Final = 4 << 20

__all__ = ["Helpers", "run_parallel", "use_helpers"]
