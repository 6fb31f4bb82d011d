"""What a region source written in Python looks like."""

from typing import Protocol


class Source(Protocol):
    """Where a pool gets its regions, written in Python.

    A pool calls its source from one thread at a time and holds no lock meanwhile. A source may free memory of
    the same pool, and may allocate from it what fits without growth. An optional attribute ``joins_regions``
    (bool, read once) says whether a region that starts where another ends may be joined to it.

    A pool holds its source; a source that also holds its pool keeps both for good, so let it hold a
    ``weakref``.
    """

    def reserve(self, nbytes: int, alignment: int, /) -> tuple[int, int] | None:
        """Return ``(address, nbytes)`` of at least ``nbytes`` bytes, or ``None`` to refuse.

        Address and length are multiples of 256. An exception ends the request: it is the cause of the
        ``OutOfMemoryError`` that the caller sees.
        """
        ...

    def release(self, address: int, nbytes: int, /) -> None:
        """Take a region back: one grant, or the whole span of several that were joined.

        An exception here is reported through ``sys.unraisablehook``.
        """
        ...
