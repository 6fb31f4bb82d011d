"""What the ``install`` of an integration has changed, for each device, and how it is undone."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final


class Installations:
    """The installations of one library.

    Args:
        library: The library's name in errors.
    """

    def __init__(self, library: str) -> None:
        self._library: Final = library
        # Re-entrant: a finaliser may uninstall.
        self._lock: Final = threading.RLock()
        self._undo: Final[dict[int, ExitStack]] = {}

    @contextmanager
    def add(self, device: int) -> Iterator[ExitStack]:
        """Install for a device in the block, which pushes what undoes it; a block that raises leaves nothing behind.

        Raises:
            RuntimeError: The library takes the device's memory from a pool already.
        """
        with self._lock:
            if device in self._undo:
                raise RuntimeError(
                    f"{self._library} takes memory of CUDA device {device} from a pool already: uninstall() first"
                )
            with ExitStack() as undo:
                yield undo
                self._undo[device] = undo.pop_all()

    def uninstall(self) -> None:
        """Undo every ``install``, the last one first. What is allocated keeps its memory.

        Raises:
            RuntimeError: Nothing is installed.
        """
        with self._lock:
            if not self._undo:
                raise RuntimeError("nothing to uninstall: install() was not called")
            with ExitStack() as undo:
                for each in self._undo.values():
                    undo.push(each.pop_all().__exit__)
                self._undo.clear()


def stream_handle(stream: object) -> int:
    """Return the handle of a stream that has the protocol ``__cuda_stream__``; 0, the default stream, for ``None``.

    Raises:
        TypeError: It has not.
    """
    if stream is None:
        return 0
    protocol = getattr(stream, "__cuda_stream__", None)
    if not callable(protocol):
        raise TypeError(f"expected a stream with __cuda_stream__, not {type(stream).__name__}")
    _version, handle = protocol()
    return int(handle)


__all__ = ["Installations", "stream_handle"]
