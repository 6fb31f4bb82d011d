"""Break one rule of the allocator after another, and check that the test named for it fails.

`tests/mutations.toml` lists the rules. A mutation names the item of the source that implements the rule (a function,
as `Type::function`, or a constant) and the code to replace in it, in any layout. Code that does not occur exactly once
in items of that name is an error, and so is a change that does not build. A rule whose test passes although it is
broken is a failure.

`make mutations`, or `python3 tests/mutations.py WORD...` for the rules that contain one of the words. With `--check`
no test runs: the list must fit the code, and the tests that it names must exist.
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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Kept between runs, so that each mutation rebuilds only the changed crate.
TARGET = ROOT / "target" / "mutations"
#: The most time to build and run one test; a broken rule may make it hang.
DEADLINE_SECONDS = 400
#: Where the rules are implemented.
SOURCES = ("rust/core/src", "rust/sync/src", "rust/opencl/src")
#: A block of methods, and a function or constant.
IMPL = re.compile(r"^impl(?:<[^{]*?>)? (?:[^{]*? for )?(?P<type>\w+)[^{]*\{.*?^\}", re.M | re.S)
ITEM = re.compile(
    r"^(?P<indent> *)(?:pub(?:\([\w: ]+\))? )?(?:const |unsafe )*fn (?P<function>\w+).*?^(?P=indent)\}"
    r"|^ *(?:pub(?:\([\w: ]+\))? )?(?:const|static) (?P<constant>\w+): [^;]*?;",
    re.M | re.S,
)
#: Enough for the random tests to find what is broken here.
ENVIRONMENT = {
    "ALLOTMENT_MODEL_PROGRAMS": "300",
    "ALLOTMENT_HISTORY_EVENTS": "3000000",
    "CARGO_TARGET_DIR": str(TARGET),
    "CARGO_INCREMENTAL": "1",
}


@dataclass(frozen=True)
class Mutation:
    """A rule, a change that breaks it, and the test that must fail then."""

    rule: str
    #: The item that implements the rule: ``Type::function``, ``function`` or ``CONSTANT``.
    item: str
    find: str
    replace: str
    #: ``lib`` for the unit tests, ``lock`` for the models of ``rust/sync``, or the name of a test program.
    program: str
    #: The full name of the test in it.
    test: str


@dataclass(frozen=True)
class Item:
    """A function or constant of the sources: its name, its file, and the range of its text."""

    name: str
    file: Path
    start: int
    end: int


@dataclass(frozen=True)
class Result:
    """The outcome of a run of tests, and its output."""

    passed: bool
    output: str


class MutationError(Exception):
    """The list of mutations does not fit the code."""


def copy_tree(to: Path) -> None:
    """Copy all files that git tracks or would track."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            # Not with its old times: a build of the last run's broken files must not look up to date.
            shutil.copy(ROOT / name, to / name)


def run_tests(tree: Path, program: str, tests: list[str]) -> Result:
    """Run tests by their full names, without warnings about broken code."""
    elsewhere = {"lock": ("allotment-sync", "loom"), "opencl": ("allotment-opencl", "lib")}
    package, name = elsewhere.get(program, ("allotment", program))
    which = ["--lib"] if name == "lib" else ["--test", name]
    if program == "histories":
        which += ["--features", "decisions"]
    flags = "--cap-lints=allow"
    if name == "loom":
        # Loom's flags change every crate: a folder of its own keeps the other builds.
        which += ["--release", "--target-dir", str(TARGET / "loom")]
        flags += " --cfg loom"
    process = subprocess.Popen(
        ["cargo", "test", "--quiet", "--package", package, *which, "--", "--exact", *tests],
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
        # Cargo, and the test that it started.
        os.killpg(process.pid, signal.SIGKILL)
        raise MutationError(f"{program} {tests} hangs: name a test that fails") from None
    return Result(process.returncode == 0, output)


def check_unbroken(tree: Path, mutations: list[Mutation]) -> None:
    """Check that every named test exists and passes while nothing is broken."""
    for program in sorted({mutation.program for mutation in mutations}):
        tests = sorted({mutation.test for mutation in mutations if mutation.program == program})
        result = run_tests(tree, program, tests)
        passed = re.search(r"test result: ok\. (\d+) passed", result.output)
        if not result.passed or passed is None or int(passed[1]) != len(tests):
            raise MutationError(f"not all of {tests} pass before anything is broken\n{result.output[-3000:]}")


def sources(root: Path) -> list[Path]:
    """Return the source files that implement rules, without unit tests."""
    files = (path for folder in SOURCES for path in (root / folder).rglob("*.rs"))
    return sorted(path for path in files if path.name != "tests.rs")


def items(file: Path) -> Iterator[Item]:
    """Yield the functions and constants of a file, which is laid out by rustfmt."""
    text = file.read_text()
    blocks = [(match["type"], match.span()) for match in IMPL.finditer(text)]
    for match in ITEM.finditer(text):
        owner = next((kind for kind, (start, end) in blocks if start <= match.start() < end), None)
        name = match["function"] or match["constant"]
        yield Item(f"{owner}::{name}" if owner else name, file, *match.span())


def pattern(code: str) -> re.Pattern[str]:
    """Return a pattern for code in any layout."""
    return re.compile(r"\s*".join(map(re.escape, re.findall(r"\w+|[^\w\s]", code))))


def break_rule(root: Path, mutation: Mutation) -> tuple[Path, str]:
    """Return the file that implements the rule, and its text with the rule broken.

    Raises:
        MutationError: The code to replace is not in the item exactly once.
    """
    found = [
        (item.file, match.span())
        for file in sources(root)
        for item in items(file)
        if item.name == mutation.item
        for match in pattern(mutation.find).finditer(file.read_text(), item.start, item.end)
    ]
    if len(found) != 1:
        text = f"{mutation.rule}: stale, {mutation.find!r} is {len(found)} times in {mutation.item}"
        raise MutationError(text)
    [(file, (start, end))] = found
    text = file.read_text()
    return file, text[:start] + mutation.replace + text[end:]


def check_test(mutation: Mutation) -> None:
    """Check that the sources have the test that a mutation names.

    Raises:
        MutationError: They do not.
    """
    if mutation.program == "lib":
        files = [path for folder in SOURCES for path in (ROOT / folder).rglob("tests.rs")]
    elif mutation.program == "lock":
        files = [ROOT / "rust" / "sync" / "tests" / "loom.rs"]
    elif mutation.program == "opencl":
        files = [ROOT / "rust" / "opencl" / "src" / "tests.rs"]
    else:
        program = ROOT / "tests" / "core" / mutation.program
        files = [program.with_suffix(".rs"), *program.glob("*.rs")]
    text = "\n".join(path.read_text() for path in files)
    *modules, name = mutation.test.split("::")
    known = all(
        re.search(rf"\b{module}\b", text) for module in modules if mutation.program not in ("lib", "opencl")
    )
    if not known or not re.search(rf"\bfn {name}\b", text):
        raise MutationError(f"{mutation.rule}: {mutation.program} has no test {mutation.test}")


def is_caught(tree: Path, mutation: Mutation) -> bool:
    """Break the rule, run its test, and restore the rule."""
    file, changed = break_rule(tree, mutation)
    text = file.read_text()
    file.write_text(changed)
    try:
        result = run_tests(tree, mutation.program, [mutation.test])
    finally:
        file.write_text(text)
    # A test that ran is counted in the output, however it ended; otherwise the change did not build.
    if "running 1 test" not in result.output:
        raise MutationError(f"{mutation.rule}: does not build\n{result.output[-3000:]}")
    return not result.passed


def main(arguments: list[str]) -> int:
    """Go through the list; the exit status is 0 if a test fails for every rule."""
    words = [argument for argument in arguments if argument != "--check"]
    listed = tomllib.loads((ROOT / "tests" / "mutations.toml").read_text())["mutation"]
    mutations = [Mutation(**fields) for fields in listed]
    if len({mutation.rule for mutation in mutations}) < len(mutations):
        raise MutationError("two mutations have the same rule")
    mutations = [m for m in mutations if not words or any(word in m.rule for word in words)]
    for mutation in mutations:
        break_rule(ROOT, mutation)
        check_test(mutation)
    if "--check" in arguments:
        print(f"{len(mutations)} rules fit the code")
        return 0
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
    print(f"{len(mutations)} rules, {survived} of them without a test that fails")
    return 1 if survived else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except MutationError as error:
        sys.exit(f"error: {error}")
