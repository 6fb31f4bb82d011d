"""The context manager that the ``use`` functions of integrations return."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final


class Block:
    """A ``with`` block in which a library takes memory from a pool. It may be entered again, also inside itself.

    Args:
        begin: Called at the start of the block; what it returns is left at the end.
    """

    __slots__ = ("_begin", "_entered")

    def __init__(self, begin: Callable[[], AbstractContextManager[object]]) -> None:
        self._begin: Final = begin
        #: The innermost last.
        self._entered: Final[list[AbstractContextManager[object]]] = []

    def __enter__(self) -> None:
        block = self._begin()
        block.__enter__()
        self._entered.append(block)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.pop().__exit__(kind, value, trace)


__all__ = ["Block"]
