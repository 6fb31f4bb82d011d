"""The pools of a library that has one allocator for the whole process: by ``install``, and by ``use`` blocks inside."""

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class _Layer(NamedTuple, Generic[T]):
    """Memory that is or was the library's, with what installed it."""

    memory: T
    #: The ``use`` block that installed it; ``None`` for ``install``.
    block: object | None
    #: Identifier of the thread that installed it.
    thread: int


class ProcessWide(Generic[T]):
    """The memory that a library uses in this process, and the memory that it used before.

    Args:
        library: The library's name, for messages.
        change: Called with the new and the former memory, of which ``None`` is the library's own. An error means that
            nothing has changed.
    """

    def __init__(self, library: str, change: Callable[[T | None, T | None], None]) -> None:
        self._library = library
        self._change = change
        #: The innermost last.
        self._layers: list[_Layer[T]] = []
        #: Held while the library's memory changes. Re-entrant: a finaliser may uninstall.
        self.lock = threading.RLock()
        # A thread that a forked child does not have may hold the lock.
        os.register_at_fork(after_in_child=self._renew_lock)

    def install(self, memory: T) -> None:
        """Make ``memory`` the library's.

        Raises:
            RuntimeError: Other memory is the library's already.
        """
        with self.lock:
            if self._layers:
                raise RuntimeError(
                    f"{self._library}'s memory is in a pool already: uninstall() first, or nest with use()"
                )
            self._add(memory, None)

    def uninstall(self) -> None:
        """Undo ``install``. What is allocated, and sessions that exist, keep the memory of the pool.

        Raises:
            RuntimeError: Nothing is installed, or a ``use`` block inside has not ended.
        """
        with self.lock:
            if not self._layers:
                raise RuntimeError("nothing to uninstall: install() was not called")
            if self._layers[-1].block is not None:
                raise RuntimeError("uninstall() inside a use() block: the block ends by itself")
            self._cut(len(self._layers) - 1)

    def enter(self, memory: T, block: object) -> None:
        """Make ``memory`` the library's until ``leave(block)``.

        Raises:
            RuntimeError: Another thread is in a block.
        """
        with self.lock:
            innermost = self._layers[-1] if self._layers else None
            if innermost and innermost.block is not None and innermost.thread != threading.get_ident():
                raise RuntimeError(
                    f"another thread is in a use() block of {self._library}, which applies to all threads: enter the "
                    "blocks one after the other, or install() one pool for all"
                )
            self._add(memory, block)

    def leave(self, block: object) -> None:
        """Undo ``enter`` with this block, and everything inside the block that has not ended."""
        with self.lock:
            for depth in reversed(range(len(self._layers))):
                if self._layers[depth].block is block:
                    self._cut(depth)
                    break

    def begin(self, memory: T) -> ExitStack:
        """Make ``memory`` the library's, as ``enter`` does; return what undoes it."""
        undo = ExitStack()
        self.enter(memory, undo)
        undo.callback(self.leave, undo)
        return undo

    def _add(self, memory: T, block: object | None) -> None:
        self._change(memory, self._layers[-1].memory if self._layers else None)
        self._layers.append(_Layer(memory, block, threading.get_ident()))

    def _cut(self, depth: int) -> None:
        self._change(self._layers[depth - 1].memory if depth else None, self._layers[-1].memory)
        del self._layers[depth:]

    def _renew_lock(self) -> None:
        self.lock = threading.RLock()


__all__ = ["ProcessWide"]
