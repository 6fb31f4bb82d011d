"""What documents show: programs with what they print, and command lines with what they answer."""

import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Self

import pytest

from support.child import DEADLINE_SECONDS, run_program
from support.guests.opencl import pyopencl_with_kernels

ROOT = Path(__file__).resolve().parents[3]
_NEEDS_GPU = re.compile(r"# needs a GPU(.*)\n")
_FENCE = re.compile(r"^```([\w-]+)\n(.*?)^```\n", flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A program or a command line; in what it prints, ``...`` stands for anything."""

    page: str
    line: int
    language: str
    text: str
    printed: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def needed_on_gpu(self) -> tuple[str, ...] | None:
        """The packages of a program that says in its first line that it needs a GPU; ``None`` for others."""
        first = _NEEDS_GPU.match(self.text)
        return None if first is None else tuple(re.findall(r"\w+", first[1].replace(" and ", " ")))


@dataclass(frozen=True)
class Document:
    """The examples of one page."""

    programs: tuple[Example, ...]
    commands: tuple[Example, ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        page = path.relative_to(ROOT).as_posix()
        fences = list(_FENCE.finditer(path.read_text(encoding="utf-8")))
        programs: list[Example] = []
        commands: list[Example] = []
        for fence, following in zip_longest(fences, fences[1:]):
            language, text = fence.groups()
            line = fence.string.count("\n", 0, fence.start()) + 1
            if language == "python":
                # A text right behind a program that prints is its output.
                is_output = (
                    "print(" in text
                    and following is not None
                    and following[1] == "text"
                    and not fence.string[fence.end() : following.start()].strip()
                )
                printed = following[2] if following and is_output else "..."
                programs.append(Example(page, line, language, text, printed))
            elif language == "console":
                for call in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                    command, _, printed = call.partition("\n")
                    commands.append(Example(page, line, language, command, printed or "..."))
        return cls(tuple(programs), tuple(commands))


def parameters(examples: Iterable[Example]) -> list[Any]:
    """Return examples as pytest's parameters; those that need a GPU have its mark."""
    return [
        pytest.param(
            example, id=str(example), marks=[pytest.mark.gpu] if example.needed_on_gpu is not None else []
        )
        for example in examples
    ]


def run(example: Example) -> None:
    """Run an example: it succeeds, complains of nothing, and prints what the page says."""
    for package in example.needed_on_gpu or ():
        pytest.importorskip(package)
    if "import pyopencl" in example.text:
        pyopencl_with_kernels()
    if example.language == "python":
        done = run_program(example.text)
    else:
        name, *arguments = example.text.split()
        assert name == "allotment", f"{example}: not a command of ours"
        done = subprocess.run(
            [sys.executable, "-m", "allotment", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, ""), f"{example}: {done.returncode}: {done.stderr}"
    assert matches(example.printed, done.stdout), f"{example}: prints {done.stdout}"


def matches(wanted: str, printed: str) -> bool:
    """Return whether a text is what a page shows; ``...`` there stands for anything, also for nothing."""
    parts = [re.escape(part) for part in wanted.rstrip().split("...")]
    return re.fullmatch("(.|\n)*?".join(parts), printed.rstrip()) is not None
