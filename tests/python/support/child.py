"""Runs programs in a new interpreter."""

import os
import subprocess
import sys
import textwrap

#: Time limit of a child process; a longer one hangs.
DEADLINE_SECONDS = 60


def environment() -> dict[str, str]:
    """Return the environment for a child: one that wants another driver than the machine's sets it by itself."""
    return {name: value for name, value in os.environ.items() if name != "ALLOTMENT_CUDA_DRIVER"}


def run_program(text: str, *, timeout: float = DEADLINE_SECONDS) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter and return its output and exit status."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
