"""A stand-in for the part of CuPy that an allocator works with: pointers, their owners, and arrays that keep them."""

import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class UnownedMemory:
    """Memory that an owner keeps (``cupy.cuda.UnownedMemory``)."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self._owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer:
    """A place in memory (``cupy.cuda.MemoryPointer``)."""

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id


class OutOfMemoryError(MemoryError):
    """CuPy's error for a request that was refused (``cupy.cuda.memory.OutOfMemoryError``)."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        super().__init__(
            f"Out of memory allocating {size:,} bytes (allocated so far: {total:,}, limit: {limit:,})."
        )


class _Memory:
    UnownedMemory = UnownedMemory
    MemoryPointer = MemoryPointer
    OutOfMemoryError = OutOfMemoryError


class _Array:
    """An array that is memory only; a slice is another pointer into it."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __getitem__(self, key: slice) -> "_Array":
        return _Array(MemoryPointer(self.data.mem, 4 * int(key.start)))


class Stream:
    """``cupy.cuda.Stream``."""

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


class Cuda:
    """``cupy.cuda``: an allocator for all threads, and one for each thread."""

    memory = _Memory

    def __init__(self) -> None:
        self._allocator: Any = None
        self._of_thread = threading.local()
        self.device = 0
        self.stream = Stream(0)
        self.runtime = types.SimpleNamespace(getDevice=lambda: self.device)

    def set_allocator(self, allocator: Any) -> None:
        if getattr(self._of_thread, "allocator", None) is not None:
            raise ValueError("Can't change the global allocator inside `using_allocator` context manager")
        self._allocator = allocator

    def get_allocator(self) -> Any:
        return getattr(self._of_thread, "allocator", None) or self._allocator

    @contextmanager
    def using_allocator(self, allocator: Any) -> Iterator[None]:
        former = getattr(self._of_thread, "allocator", None)
        self._of_thread.allocator = allocator
        try:
            yield
        finally:
            self._of_thread.allocator = former

    def get_current_stream(self) -> Any:
        return self.stream

    def allocate(self, nbytes: int) -> Any:
        return self.get_allocator()(nbytes)


class Cupy:
    """``cupy``: arrays without elements that can be read."""

    def __init__(self) -> None:
        self.cuda = Cuda()

    def empty(self, size: int, dtype: str = "f4") -> Any:
        assert dtype == "f4"
        return _Array(self.cuda.allocate(4 * size))


__all__ = ["Cupy"]
