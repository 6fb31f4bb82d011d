"""Break one rule of the allocator after another, and see that the test named for it fails.

`tests/mutations.toml` lists the rules. A text that is not in its file exactly once is an error, and so is a change
that does not build; a rule whose test passes although it is broken is a failure.

`make mutations`, or `python3 tests/mutations.py WORD...` for the rules that contain one of the words.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Kept from run to run, so that only what a change touches is built.
TARGET = ROOT / "target" / "mutations"
#: Building and running one test; a broken rule may also make it hang.
DEADLINE_SECONDS = 400
#: Enough for the model to find what is broken here.
ENVIRONMENT = {"ALLOTMENT_MODEL_PROGRAMS": "300", "CARGO_TARGET_DIR": str(TARGET), "CARGO_INCREMENTAL": "1"}


@dataclass(frozen=True)
class Mutation:
    """A rule, how it is broken, and who must notice."""

    rule: str
    file: str
    find: str
    replace: str
    #: ``lib`` for the unit tests, or the name of a test program.
    program: str
    #: The full name of the test in it.
    test: str


@dataclass(frozen=True)
class Result:
    """How a run of tests ended, and what it printed."""

    passed: bool
    output: str


class MutationError(Exception):
    """The list does not fit the code."""


def copy_tree(to: Path) -> None:
    """Copy what is tracked or would be."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            # With the time of now: what the last run built from broken files must not look up to date.
            shutil.copy(ROOT / name, to / name)


def run_tests(tree: Path, program: str, tests: list[str]) -> Result:
    """Run tests by their full names; the warnings of broken code are of no interest."""
    which = ["--lib"] if program == "lib" else ["--test", program]
    flags = "--cap-lints=allow"
    if program == "loom":
        # Locks that can be taken in every order, and folders of their own: flags that change build all anew.
        which += ["--release", "--target-dir", str(TARGET / "loom")]
        flags += " --cfg loom"
    process = subprocess.Popen(
        ["cargo", "test", "--quiet", "--package", "allotment", *which, "--", "--exact", *tests],
        cwd=tree,
        env={**os.environ, "RUSTFLAGS": flags, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        # Cargo and the test it started.
        os.killpg(process.pid, signal.SIGKILL)
        raise MutationError(f"{program} {tests} hangs: name a test that fails") from None
    return Result(process.returncode == 0, output)


def check_unbroken(tree: Path, mutations: list[Mutation]) -> None:
    """Every test named in the list is there, and passes while nothing is broken."""
    for program in sorted({mutation.program for mutation in mutations}):
        tests = sorted({mutation.test for mutation in mutations if mutation.program == program})
        result = run_tests(tree, program, tests)
        passed = re.search(r"test result: ok\. (\d+) passed", result.output)
        if not result.passed or passed is None or int(passed[1]) != len(tests):
            raise MutationError(f"not all of {tests} pass before anything is broken\n{result.output[-3000:]}")


def broken(text: str, mutation: Mutation) -> str:
    """The file with the rule broken."""
    if text.count(mutation.find) != 1:
        count = text.count(mutation.find)
        raise MutationError(f"{mutation.rule}: stale, {mutation.find!r} is {count} times in {mutation.file}")
    return text.replace(mutation.find, mutation.replace)


def is_caught(tree: Path, mutation: Mutation) -> bool:
    """Break the rule, run its test, and mend it again."""
    file = tree / mutation.file
    text = file.read_text()
    file.write_text(broken(text, mutation))
    try:
        result = run_tests(tree, mutation.program, [mutation.test])
    finally:
        file.write_text(text)
    # A test that ran says so, however it ended; without that it was not built.
    if "running 1 test" not in result.output:
        raise MutationError(f"{mutation.rule}: does not build\n{result.output[-3000:]}")
    return not result.passed


def main(words: list[str]) -> int:
    """Go through the list; the exit status says whether every rule is watched."""
    listed = tomllib.loads((ROOT / "tests" / "mutations.toml").read_text())["mutation"]
    mutations = [Mutation(**fields) for fields in listed]
    mutations = [m for m in mutations if not words or any(word in m.rule for word in words)]
    for mutation in mutations:
        broken((ROOT / mutation.file).read_text(), mutation)
    survived = 0
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        check_unbroken(tree, mutations)
        width = max((len(mutation.rule) for mutation in mutations), default=0)
        for mutation in mutations:
            start = time.monotonic()
            caught = is_caught(tree, mutation)
            survived += not caught
            verdict = f"caught by {mutation.program} {mutation.test}" if caught else "SURVIVED"
            print(f"{mutation.rule:<{width}}  {time.monotonic() - start:4.0f} s  {verdict}", flush=True)
    print(f"{len(mutations)} rules, {survived} of them unwatched")
    return 1 if survived else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except MutationError as error:
        sys.exit(f"error: {error}")
