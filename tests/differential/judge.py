"""Runs generated programs in this package and in TensorFlow, and reports the differences that are not accepted.

python judge.py --tensorflow PYTHON [--functions 'math.*,@reductions'] [--modes eager] [--count 50] [--seed 1] [--all]
"""

import argparse
import fnmatch
import itertools
import os
import pickle
import select
import struct
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import families
from compare import Difference, compare
from differences import Table
from outcome import Failed
from programs import MODES, Program, programs

HERE = Path(__file__).parent
#: Known bugs that are not fixed yet: a function and a kind of difference on each line.
OPEN = HERE / "open_differences.txt"
#: Time limit of a program. TensorFlow needs many seconds to compile a training on a busy machine.
SECONDS = 90.0
#: Time limit of a worker's start, which imports a package.
START_SECONDS = 120.0


@dataclass(frozen=True)
class Finding:
    """A program whose outcomes differ."""

    program: Program
    difference: Difference
    here: Any
    there: Any
    #: The row of the table that accepts the difference, if there is one.
    known: str | None

    def __str__(self) -> str:
        return (
            f"{self.program.function} ({self.program.mode}): {self.difference.kind} {self.difference.detail}\n"
            f"    {self.program.source}\n    here:       {self.here!r}\n    TensorFlow: {self.there!r}"
        )


def judge(chosen: Sequence[Program], tensorflow: str, python: str = sys.executable) -> list[Finding]:
    """Run programs in both packages and return all differences, accepted or not.

    Args:
        chosen: The programs.
        tensorflow: Path of a Python interpreter with TensorFlow.
        python: Path of a Python interpreter with this package.
    """
    found_by: dict[str, list[Any]] = {}

    def run(package: str, interpreter: str) -> None:
        found_by[package] = list(outcomes(package, interpreter, [each.source for each in chosen]))

    threads = [
        threading.Thread(target=run, args=arguments)
        for arguments in (("allotment", python), ("tensorflow", tensorflow))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = Table.read()
    found = []
    for program, here, there in zip(chosen, found_by["allotment"], found_by["tensorflow"], strict=True):
        for difference in compare(here, there, program.tolerance)[:1]:
            known = table.reason(program, difference, here, there)
            found.append(Finding(program, difference, here, there, known))
    return found


def choose(pattern: str, modes: Sequence[str], count: int, seed: int) -> list[Program]:
    """Generate ``count`` programs for each selected function.

    Args:
        pattern: Glob patterns of functions, or names of families such as ``@reductions``, separated by commas.
        modes: The modes to choose from.
        count: Number of programs for each function.
        seed: Seed of the random numbers.
    """
    wanted: set[str] = set()
    for each in pattern.split(","):
        known = families.members(each[1:]) if each.startswith("@") else families.recipes()
        wanted.update(known if each.startswith("@") else fnmatch.filter(known, each))
    return [
        program
        for function, recipe in families.recipes().items()
        if function in wanted
        for program in itertools.islice(programs(function, recipe, seed, modes), count)
    ]


def outcomes(package: str, interpreter: str, sources: list[str]) -> Iterator[Any]:
    """Run programs in a worker process and yield their outcomes; start a new worker after a hang or crash."""
    done = 0
    while done < len(sources):
        worker = _Worker(package, interpreter, sources[done:])
        try:
            for made in worker.outcomes():
                yield made
                done += 1
        finally:
            worker.end()


class _Worker:
    """A process that runs programs with one package."""

    def __init__(self, package: str, interpreter: str, sources: list[str]) -> None:
        self._count = len(sources)
        self._process = subprocess.Popen(
            [interpreter, str(HERE / "worker.py"), package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("JUDGE_STDERR") else subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(pickle.dumps(sources))
        self._process.stdin.close()

    def outcomes(self) -> Iterator[Any]:
        """Yield the outcome of each program, up to the first that hangs or crashes."""
        started = self._read(START_SECONDS)
        if started != "ready":
            raise RuntimeError(f"the worker did not start: {started!r}; set JUDGE_STDERR=1 to see why")
        for _ in range(self._count):
            made = self._read(SECONDS)
            yield made
            if isinstance(made, Failed):
                return

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self, seconds: float) -> Any:
        head = self._bytes(8, seconds)
        if isinstance(head, Failed):
            return head
        data = self._bytes(struct.unpack("<q", head)[0], seconds)
        return data if isinstance(data, Failed) else pickle.loads(data)

    def _bytes(self, count: int, seconds: float) -> bytes | Failed:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        data = b""
        while len(data) < count:
            if not select.select([descriptor], [], [], seconds)[0]:
                return Failed("hang")
            more = os.read(descriptor, count - len(data))
            if not more:
                return Failed("crash")
            data += more
        return data


def open_differences() -> set[tuple[str, str]]:
    """Return the pairs of function and kind of difference in the list of open differences."""
    pairs = (line.partition(": ") for line in OPEN.read_text().splitlines())
    return {(function, kind) for function, _, kind in pairs}


def report(found: Sequence[Finding], total: int, examples: int, known: bool) -> None:
    """Print the differences grouped by function and kind, the largest group first."""
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for each in found:
        if each.known is None or known:
            groups[each.program.function, each.difference.kind].append(each)
    for (function, kind), members in sorted(groups.items(), key=lambda group: -len(group[1])):
        print(f"== {function}: {kind}, {len(members)} programs")
        for each in sorted(members, key=lambda finding: len(finding.program.source))[:examples]:
            print("  ", str(each).replace("\n", "\n   "))
    unknown = sum(each.known is None for each in found)
    print(f"{total} programs, {unknown} differences, {len(found) - unknown} accepted differences")


def main() -> None:
    """Run the judge from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", default=os.environ.get("ALLOTMENT_TENSORFLOW"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--functions", default="*")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--examples", type=int, default=2)
    parser.add_argument("--open", action="store_true", help=f"add the differences to {OPEN.name}")
    parser.add_argument("--all", action="store_true", help="report accepted differences, too")
    options = parser.parse_args()
    if options.tensorflow is None:
        parser.error("name a Python that has TensorFlow: --tensorflow, or ALLOTMENT_TENSORFLOW")
    chosen = choose(options.functions, options.modes.split(","), options.count, options.seed)
    found = judge(chosen, options.tensorflow, options.python)
    report(found, len(chosen), options.examples, options.all)
    if options.open:
        unknown = {(each.program.function, each.difference.kind) for each in found if each.known is None}
        pairs = sorted(open_differences() | unknown)
        OPEN.write_text("".join(f"{function}: {kind}\n" for function, kind in pairs))
    sys.exit(any(each.known is None for each in found))


if __name__ == "__main__":
    main()
