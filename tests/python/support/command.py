"""Runs the command line in a new interpreter."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from support import child
from support.child import DEADLINE_SECONDS

Done = subprocess.CompletedProcess[str]


def allotment(
    *arguments: str | Path, cwd: Path | None = None, environment: dict[str, str] | None = None
) -> Done:
    """Run `allotment` and capture stdout and stderr."""
    return subprocess.run(
        [sys.executable, "-m", "allotment", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
        cwd=cwd,
        env=child.environment() | (environment or {}),
    )


def replay_json(*arguments: str | Path, status: int = 0) -> dict[str, Any]:
    """Run `allotment replay … --json` and return the object it printed."""
    done = allotment("replay", *arguments, "--json")
    assert (done.returncode, done.stderr) == (status, "")
    figures = json.loads(done.stdout)
    assert isinstance(figures, dict)
    return figures


def complaint(done: Done, status: int = 2) -> str:
    """Check that a run failed with an empty stdout and one line on stderr, and return the line."""
    assert done.returncode == status, done
    assert done.stdout == ""
    assert done.stderr.endswith("\n")
    line = done.stderr[:-1]
    assert line.startswith("allotment: ")
    assert "\n" not in line
    assert "Traceback" not in line
    return line
