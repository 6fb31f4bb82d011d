"""A region source that behaves, refuses, breaks or lies, as it is told."""

from collections.abc import Callable
from typing import Literal, get_args

GRANULE = 256

#: What the source does when it is asked. All but ``grant`` are done until it is told otherwise.
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

#: Moods whose grant is no region; the request ends with a `RuntimeError` that says so.
FAULTY: dict[Mood, str] = {
    "odd address": "multiple of 256",
    "odd length": "multiple of 256",
    "address 0": "not within",
    "past the end": "not within",
    "overlap": "overlaps",
}


class BrokenError(Exception):
    """What the source raises when it is told to."""


class FickleSource:
    """Made-up addresses in order, `gap` bytes apart."""

    def __init__(self, gap: int, *, joins_regions: bool) -> None:
        self.gap = gap
        self.joins_regions = joins_regions
        self.mood: Mood = "grant"
        #: Done once, before the next answer.
        self.errand: Callable[[], None] | None = None
        self.release_raises = False
        #: Exceptions that came out of `release`.
        self.raised_in_release = 0
        self.next = 1 << 20
        #: What is out: address to length.
        self.out: dict[int, int] = {}
        #: Calls of `reserve` in another mood than ``grant``.
        self.misbehaved = 0
        #: Answers of no use, on their way back.
        self._false: set[tuple[int, int]] = set()

    @property
    def used(self) -> int:
        """Bytes that are out."""
        return sum(self.out.values())

    def reserve(self, nbytes: int, alignment: int) -> object:
        """Answer in the mood of the moment."""
        assert nbytes > 0
        assert nbytes % GRANULE == 0
        errand, self.errand = self.errand, None
        if errand is not None:
            errand()
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
                return self._lie(self.next, 0)
            case "odd address":
                return self._lie(self.next + 1, nbytes)
            case "odd length":
                return self._lie(self.next, nbytes + 1)
            case "address 0":
                return self._lie(0, nbytes)
            case "past the end":
                return self._lie((1 << 63) - GRANULE, nbytes)
            case "overlap" if self.out:
                # Never given back: its bytes are those of a region that is still held.
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

    def _lie(self, address: int, nbytes: int) -> tuple[int, int]:
        self._false.add((address, nbytes))
        return address, nbytes

    def release(self, address: int, nbytes: int) -> None:
        """Take back a grant, a lie, or the span of several grants that were joined."""
        if (address, nbytes) in self._false:
            self._false.remove((address, nbytes))
            return
        end = address + nbytes
        while address < end:
            address += self.out.pop(address)
        assert address == end, "a part of a grant came back"
        if self.release_raises:
            self.raised_in_release += 1
            raise BrokenError("in release")
