"""Programs that run with their large blocks of host memory in a pool."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

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
