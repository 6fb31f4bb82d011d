"""The protocol of a region source that is written in Python."""

from typing import Protocol


class Source(Protocol):
    """Protocol of an object that grants regions of memory to a pool: ``Pool(limit=..., source=MySource())``.

    A pool calls its source from one thread at a time and holds no lock during the call. The source may free memory of
    the same pool, and may allocate from it as long as the request fits without growth. An optional attribute
    ``joins_regions`` (bool, read once) says whether the pool may join a region to one that ends at its start.

    A pool keeps its source alive. A source that refers to its pool should hold a ``weakref``, or neither is freed.
    """

    def reserve(self, nbytes: int, alignment: int, /) -> tuple[int, int] | None:
        """Grant a region: return its ``(address, nbytes)``, or ``None`` to refuse.

        Args:
            nbytes: The least number of bytes to grant.
            alignment: A power of two of which the address must be a multiple.

        Returns:
            Address and length, both multiples of 256; the length is at least ``nbytes``.

        An exception ends the request and becomes the cause of the caller's ``OutOfMemoryError``.
        """
        ...

    def release(self, address: int, nbytes: int, /) -> None:
        """Take a region back: one grant, or the whole span of several grants that the pool joined.

        An exception is reported through ``sys.unraisablehook``.
        """
        ...
