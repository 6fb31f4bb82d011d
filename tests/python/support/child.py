"""Runs programs in a new interpreter."""

import subprocess
import sys
import textwrap

#: Time limit of a child process; a longer one hangs.
DEADLINE_SECONDS = 60


def run_program(text: str, *, timeout: float = DEADLINE_SECONDS) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter and return its output and exit status."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
