"""Programs that run with their large blocks of host memory in a pool."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from support.command import Done, allotment
from support.documents import ROOT

PROGRAMS = ROOT / "tests/preload"

Compile = Callable[..., Path]


def compiler(folder: Path) -> Compile:
    """Return a function that compiles a program in C, once."""

    def compile_program(source: Path, *options: str) -> Path:
        program = folder / "-".join([source.stem, *(option.lstrip("-") for option in options)])
        if not program.exists():
            flags = ["-O1", "-Wall", "-Wno-alloc-size-larger-than", "-pthread", *options]
            subprocess.run(["cc", *flags, "-o", program, source], check=True)
        return program

    return compile_program


def run(*arguments: str | Path, limit: str = "256MiB", options: Sequence[str] = ()) -> Done:
    return allotment("run", "--limit", limit, *options, "--", *arguments)


def python(program: str, limit: str = "256MiB", options: Sequence[str] = ()) -> Done:
    return run(sys.executable, "-c", program, limit=limit, options=options)


#: Calls the C library's functions directly. Blocks of 10 MB and more are the program's own: Python has none.
FUNCTIONS = """
import ctypes, os, signal, sys, time
c = ctypes.CDLL(None)
for name in ("malloc", "calloc", "realloc", "aligned_alloc"):
    getattr(c, name).restype = ctypes.c_void_p
c.calloc.argtypes = c.aligned_alloc.argtypes = [ctypes.c_size_t] * 2
c.malloc.argtypes = [ctypes.c_size_t]
c.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
c.free.argtypes = [ctypes.c_void_p]
"""
OURS = 10_000_000


def record(path: Path, program: str, *options: str) -> Done:
    return allotment(
        "record", "--host", "-o", path, *options, "--", sys.executable, "-c", FUNCTIONS + program
    )


def own_events(path: Path) -> list[tuple[int, int]]:
    """Return op and size of the events of the program's own blocks."""
    with np.load(path) as columns:
        events = zip(columns["op"].tolist(), columns["size"].tolist(), strict=True)
        return [(op, size) for op, size in events if size >= OURS]
