"""Region sources in Python, for tests of pools."""

import mmap
from collections.abc import Callable


class MappedSource:
    """Source of real memory from anonymous maps, at most `capacity` bytes in total; logs its calls."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.out: dict[int, tuple[int, mmap.mmap, memoryview]] = {}
        self.asked: list[int] = []
        self.released: list[tuple[int, int]] = []

    @property
    def used(self) -> int:
        return sum(nbytes for nbytes, _, _ in self.out.values())

    def reserve(self, nbytes: int, alignment: int) -> tuple[int, int] | None:
        self.asked.append(nbytes)
        if self.used + nbytes > self.capacity:
            return None
        import ctypes

        pages = mmap.mmap(-1, nbytes)
        view = memoryview(pages)
        address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        assert address % alignment == 0
        self.out[address] = (nbytes, pages, view)
        return address, nbytes

    def release(self, address: int, nbytes: int) -> None:
        assert self.out.pop(address)[0] == nbytes
        self.released.append((address, nbytes))


class NumberSource:
    """Source of made-up addresses; calls `before(nbytes)` first, which may raise, or return false to refuse."""

    def __init__(self, before: Callable[[int], bool] = lambda nbytes: True) -> None:
        self.before = before
        self.next = 1 << 20
        self.out: dict[int, int] = {}

    def reserve(self, nbytes: int, alignment: int) -> tuple[int, int] | None:
        if not self.before(nbytes):
            return None
        address = self.next
        self.next += nbytes + 256
        self.out[address] = nbytes
        return address, nbytes

    def release(self, address: int, nbytes: int) -> None:
        assert self.out.pop(address) == nbytes
