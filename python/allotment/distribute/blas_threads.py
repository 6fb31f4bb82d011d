"""The BLAS's own threads, while replicas compute in threads of theirs.

With several for each replica, the threads of all wait for each other: small steps would take twenty times as long.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> tuple[Any, ...]:
    """The BLAS libraries of the process; looking for them takes some milliseconds."""
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


class _Shares:
    """How many threads libraries had, while steps run."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.steps = 0
        self.former: list[int] = []


_shares: Final = _Shares()


@contextmanager
def shared_by(replicas: int) -> Iterator[None]:
    """Divide the BLAS's threads among replicas in a ``with`` block: each gets one at least.

    The number is the process's. Of blocks that overlap the first one divides, and the last one undoes it.
    """
    with _shares.lock:
        if _shares.steps == 0:
            _shares.former = [library.num_threads for library in _libraries()]
            for library, former in zip(_libraries(), _shares.former, strict=True):
                if former > 1:
                    library.set_num_threads(max(1, former // replicas))
        _shares.steps += 1
    try:
        yield
    finally:
        with _shares.lock:
            _shares.steps -= 1
            if _shares.steps == 0:
                for library, former in zip(_libraries(), _shares.former, strict=True):
                    if former > 1:
                        library.set_num_threads(former)


__all__ = ["shared_by"]
