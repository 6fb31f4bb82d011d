"""A region source that grants, refuses, raises errors or gives invalid answers on request."""

from collections.abc import Callable
from typing import Literal, get_args

GRANULE = 256

#: How the source answers. A mood stays until it is changed.
Mood = Literal[
    "grant",
    "refuse",
    "raise",
    "exit",
    "more",
    "less",
    "nothing",
    "odd address",
    "odd length",
    "address 0",
    "past the end",
    "overlap",
    "nonsense",
]
MOODS: tuple[Mood, ...] = get_args(Mood)

#: Moods with an invalid grant, each with a part of the message of the request's `RuntimeError`.
FAULTY: dict[Mood, str] = {
    "nothing": "has no bytes",
    "odd address": "multiple of 256",
    "odd length": "multiple of 256",
    "address 0": "not within",
    "past the end": "not within",
    "overlap": "overlaps",
}


class BrokenError(Exception):
    """The exception that the source raises in the mood ``raise``."""


class FickleSource:
    """Source of made-up, ascending addresses, `gap` bytes apart, whose `mood` determines its answers."""

    def __init__(self, gap: int, *, joins_regions: bool) -> None:
        self.gap = gap
        self.joins_regions = joins_regions
        self.mood: Mood = "grant"
        #: Called once, before the next answer.
        self.callback: Callable[[], None] | None = None
        self.release_raises = False
        #: Number of exceptions that `release` raised.
        self.raised_in_release = 0
        self.next = 1 << 20
        #: Live grants: address to length.
        self.out: dict[int, int] = {}
        #: Number of calls of `reserve` in another mood than ``grant``.
        self.misbehaved = 0
        #: Invalid grants that the pool has not released yet.
        self._invalid: set[tuple[int, int]] = set()

    @property
    def used(self) -> int:
        """Total bytes of the live grants."""
        return sum(self.out.values())

    def reserve(self, nbytes: int, alignment: int) -> object:
        """Run the callback, and answer according to the mood."""
        assert nbytes > 0
        assert nbytes % GRANULE == 0
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()
        if self.mood == "grant":
            return self._grant(nbytes)
        self.misbehaved += 1
        return self._misbehave(nbytes)

    def _misbehave(self, nbytes: int) -> object:
        match self.mood:
            case "refuse":
                return None
            case "raise":
                raise BrokenError(nbytes)
            case "exit":
                raise SystemExit
            case "more":
                return self._grant(nbytes + 64 * GRANULE)
            case "less":
                return self._grant(nbytes // 2 // GRANULE * GRANULE or GRANULE)
            case "nothing":
                return self._grant_invalid(self.next, 0)
            case "odd address":
                return self._grant_invalid(self.next + 1, nbytes)
            case "odd length":
                return self._grant_invalid(self.next, nbytes + 1)
            case "address 0":
                return self._grant_invalid(0, nbytes)
            case "past the end":
                return self._grant_invalid((1 << 63) - GRANULE, nbytes)
            case "overlap" if self.out:
                # The pool does not release it, because its bytes are those of a live region.
                return max(self.out), nbytes
            case "overlap":
                return None
            case _:
                return "a region"

    def _grant(self, nbytes: int) -> tuple[int, int]:
        address = self.next
        self.next += nbytes + self.gap
        self.out[address] = nbytes
        return address, nbytes

    def _grant_invalid(self, address: int, nbytes: int) -> tuple[int, int]:
        self._invalid.add((address, nbytes))
        return address, nbytes

    def release(self, address: int, nbytes: int) -> None:
        """Take back a grant, an invalid grant, or the span of several joined grants."""
        if (address, nbytes) in self._invalid:
            self._invalid.remove((address, nbytes))
            return
        end = address + nbytes
        while address < end:
            address += self.out.pop(address)
        assert address == end, "a part of a grant came back"
        if self.release_raises:
            self.raised_in_release += 1
            raise BrokenError("in release")
