"""Arrays of pyopencl that are made without an allocator: which memory they get, by thread and for the process."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final, Protocol


class Arrays(Protocol):
    """The memory of arrays that are made without an allocator."""

    def allocator(self, context: Any, queue: Any) -> Callable[[int], Any] | None:
        """Return the allocator for an array of a queue, or of a context without a queue; ``None``: as without us."""
        ...


class _OfThread(threading.local):
    """The memory of the innermost ``use`` block of this thread."""

    arrays: Arrays | None = None


_of_thread: Final = _OfThread()
#: That of the process.
_of_process: Arrays | None = None


def serve_thread(arrays: Arrays) -> ExitStack:
    """Serve the arrays that this thread makes from now on; return what undoes it.

    What is undone in another thread changes nothing there.
    """
    undo = ExitStack()
    _hook.add()
    undo.callback(_hook.remove)
    undo.callback(_restore, threading.get_ident(), _of_thread.arrays)
    _of_thread.arrays = arrays
    return undo


def _restore(thread: int, former: Arrays | None) -> None:
    if threading.get_ident() == thread:
        _of_thread.arrays = former


def serve_process(arrays: Arrays | None, former: Arrays | None) -> None:
    """Serve the arrays of threads that are in no block, or stop to."""
    global _of_process
    if former is None:
        _hook.add()
    _of_process = arrays
    if arrays is None:
        _hook.remove()


class _Hook:
    """Replaces the function that makes an array of pyopencl, while an installation or a block needs it."""

    def __init__(self) -> None:
        self._lock: Final = threading.RLock()
        self._needed = 0
        self._former: Any = None
        self._ours: Any = None

    def add(self) -> None:
        array = _array_class()
        with self._lock:
            self._needed += 1
            if self._needed == 1:
                self._former = array.__init__
                self._ours = array.__init__ = _making_arrays(self._former)

    def remove(self) -> None:
        array = _array_class()
        with self._lock:
            self._needed -= 1
            # A program that has replaced it meanwhile keeps that; ours does nothing then.
            if self._needed == 0 and array.__init__ is self._ours:
                array.__init__ = self._former


_hook: Final = _Hook()


def _array_class() -> Any:
    import pyopencl.array

    return pyopencl.array.Array


def _making_arrays(former: Callable[..., None]) -> Callable[..., None]:
    """Return an ``__init__`` of pyopencl's arrays that uses the current pool where the caller gives no allocator."""

    def __init__(  # noqa: N807 - it takes the place of one
        self: Any,
        cq: Any,
        shape: Any,
        dtype: Any,
        order: Any = "C",
        allocator: Any = None,
        data: Any = None,
        *arguments: Any,
        **options: Any,
    ) -> None:
        made = None
        if allocator is None and data is None:
            arrays = _of_thread.arrays or _of_process
            made = arrays and _of_array(arrays, cq, options)
        former(self, cq, shape, dtype, order, made or allocator, data, *arguments, **options)
        if made:
            # Arrays that are made of this one later have no allocator either.
            self.allocator = None

    return __init__


def _of_array(arrays: Arrays, cq: Any, options: dict[str, Any]) -> Callable[[int], Any] | None:
    """Return the allocator for an array by the arguments with which it is made."""
    import pyopencl

    queue = cq if isinstance(cq, pyopencl.CommandQueue) else options.get("_queue")
    context = cq if isinstance(cq, pyopencl.Context) else options.get("_context")
    if queue is not None and context is None:
        context = queue.context
    return None if context is None else arrays.allocator(context, queue)


__all__ = ["Arrays", "serve_process", "serve_thread"]
