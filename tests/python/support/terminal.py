"""Runs the command line on a pseudo-terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path


def on_a_terminal(*arguments: str | Path, stream: str, columns: int = 100) -> tuple[int, str, str]:
    """Run the command line with one stream on a terminal.

    Args:
        *arguments: Arguments of the command line.
        stream: The stream on the terminal: `"stdout"` or `"stderr"`.
        columns: Width of the terminal.

    Returns:
        The exit status, the text on the terminal, and the text of the other stream.
    """
    master, slave = pty.openpty()
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {stream: slave}
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CI")}
    child = subprocess.Popen(
        [sys.executable, "-m", "allotment", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        env=environment | {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "40"},
        **streams,  # type: ignore[call-overload]
    )
    os.close(slave)
    shown = b""
    try:
        while block := os.read(master, 65536):
            shown += block
    except OSError:
        pass  # raised when the child has closed the terminal
    finally:
        os.close(master)
    out, err = child.communicate(timeout=60)
    return child.returncode, shown.decode(), (err if stream == "stdout" else out).decode()
