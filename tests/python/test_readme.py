"""What the README says is run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.child import run_program

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README, flags=re.M | re.S)
COMMANDS = re.findall(r"^\$ allotment (.*)$", README, flags=re.M)
TARGETS = re.findall(r"^make ([a-z-]+)", README, flags=re.M)


def test_there_is_something_to_run() -> None:
    assert len(EXAMPLES) >= 2
    assert len(COMMANDS) >= 3
    assert TARGETS == ["demo", "test"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_run(example: str) -> None:
    done = run_program(example)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_run(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "allotment", *command.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "events" in done.stdout


def test_the_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in {*TARGETS, *re.findall(r"`make ([a-z-]+)`", (ROOT / "CONTRIBUTING.md").read_text())}:
        assert re.search(rf"^{target}:.*## ", makefile, flags=re.M), target


def test_every_file_the_contributors_page_names_is_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    for crate, several in {"rust/core/src": 12, "rust/sync/src": 4}.items():
        (block,) = re.findall(rf"^{crate}/ .*\n((?:  .*\n)+)", page, flags=re.M)
        lines = [line for line in block.splitlines() if line.startswith("  ") and line[2] != " "]
        named = {name for line in lines for name in re.findall(r"[a-z_]+\.rs", line)}
        assert len(named) > several
        for name in named:
            assert (ROOT / crate / name).is_file(), name
        present = {path.name for path in (ROOT / crate).glob("*.rs")} - {"lib.rs"}
        assert present == named
