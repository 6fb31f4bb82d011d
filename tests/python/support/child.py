"""Programs run in an interpreter of their own."""

import subprocess
import sys
import textwrap

#: No child of these tests needs longer; a hang is a failure.
DEADLINE_SECONDS = 60


def run_program(text: str, *, timeout: float = DEADLINE_SECONDS) -> subprocess.CompletedProcess[str]:
    """Run a program and return what it printed and its exit status."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
