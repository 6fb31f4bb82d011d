"""Runs programs in a new interpreter."""

import os
import subprocess
import sys
import textwrap

#: Time limit of a child process; a longer one hangs.
DEADLINE_SECONDS = 60


def run_program(text: str, *, timeout: float = DEADLINE_SECONDS) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter and return its output and exit status."""
    # Programs that want another driver than the machine's set it by themselves.
    environ = {name: value for name, value in os.environ.items() if name != "ALLOTMENT_CUDA_DRIVER"}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
