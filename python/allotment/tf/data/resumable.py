"""Iterators that go on after an error."""

from collections.abc import Callable, Iterator
from typing import Any


class Resumable(Iterator[Any]):
    """An iterator over the values that a function returns, until it raises ``StopIteration``.

    Unlike a generator, it goes on after another error.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function

    def __next__(self) -> Any:
        return self._function()


__all__ = ["Resumable"]
