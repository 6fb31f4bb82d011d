"""The allocators that a program can be played with: pools, and libraries of C that are installed."""

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from allotment._core import Pool, time_functions, time_pool
from allotment.cli.bench.measure import Contender, LeftOut
from allotment.cli.bench.workloads import Played

#: Limit of pools, if a program needs no more than an eighth of it. Nothing is reserved before it is needed.
_LIMIT = 4 << 30

#: Libraries by name: files, of which the first that is there is taken, and names of the two functions.
_LIBRARIES: Final = {
    "mimalloc": (("libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so"), ("mi_malloc", "mi_free")),
    "jemalloc": (("libjemalloc.so.2", "libjemalloc.so"), ("malloc", "free")),
    "tcmalloc": (("libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "libtcmalloc.so"), ("malloc", "free")),
}


@dataclass(frozen=True, slots=True)
class Allocator:
    """An allocator, which makes a contender of each program."""

    name: str
    #: Returns what plays a program once, and returns the nanoseconds.
    prepare: Callable[[Played], Callable[[], float]]

    def contender(self, played: Played) -> Contender:
        """Return this allocator as a contender. A figure is of an event of one thread."""
        return Contender(self.name, self.prepare(played), max(played.measured, 1))


class _DlInfo(ctypes.Structure):
    """The structure that ``dladdr`` fills in."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def find_allocators() -> tuple[list[Allocator], list[LeftOut]]:
    """Return pools and the libraries that can be loaded, and those that cannot, with the reason."""
    process = ctypes.CDLL(None)
    allocators = [
        Allocator("pool", _in_pool(thread_caches=False)),
        Allocator("pool, thread caches", _in_pool(thread_caches=True)),
        Allocator(f"malloc ({_file_of(process.malloc)})", _with_functions(process, "malloc", "free")),
    ]
    left_out = []
    for name, (files, functions) in _LIBRARIES.items():
        reason = "no library is installed"
        for file in files:
            try:
                library = ctypes.CDLL(file)
                allocators.append(Allocator(name, _with_functions(library, *functions)))
            except (OSError, AttributeError) as error:
                if "No such file" not in str(error):
                    reason = str(error)
            else:
                break
        else:
            left_out.append(LeftOut(name, reason))
    return allocators, left_out


def _in_pool(*, thread_caches: bool) -> Callable[[Played], Callable[[], float]]:
    def prepare(played: Played) -> Callable[[], float]:
        # Made when it is first played, and gone with the workload: pools of one workload alone hold memory.
        made: list[Pool] = []

        def play() -> float:
            if not made:
                limit = max(_LIMIT, 8 * played.threads * played.program.peak_live)
                made.append(Pool(limit, thread_caches=thread_caches, guard=False))
            return time_pool(played.program, made[0], setup=played.setup, threads=played.threads)

        return play

    return prepare


def _with_functions(
    library: ctypes.CDLL, allocate: str, free: str
) -> Callable[[Played], Callable[[], float]]:
    """Return what plays programs with two functions.

    Raises:
        AttributeError: The library lacks one of them.
    """
    first, second = (_address(getattr(library, name)) for name in (allocate, free))

    def prepare(played: Played) -> Callable[[], float]:
        return lambda: time_functions(
            played.program, first, second, setup=played.setup, threads=played.threads
        )

    return prepare


def _address(function: Callable[..., object]) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def _file_of(function: Callable[..., object]) -> str:
    """Return the name of the file that a function is in: another one than libc's if a library was preloaded."""
    found = _DlInfo()
    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = (ctypes.c_void_p, ctypes.POINTER(_DlInfo))
    if not dladdr(_address(function), ctypes.byref(found)) or not found.file:
        return "of the process"
    return os.path.basename(os.fsdecode(found.file))
