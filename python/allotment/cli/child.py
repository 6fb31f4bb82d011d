"""Runs the programs of commands."""

import errno
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from allotment.cli.command import BadInput

#: Runs files that the system cannot run and that look like text, as `execvp` does.
_SHELL = "/bin/sh"

#: Added to the number of the signal that ended a program, as shells do.
SIGNALLED = 128

#: Bytes of a file that tell whether it is text.
_BEGINNING_BYTES = 4096


def run(program: Sequence[str], environment: Mapping[str, str]) -> tuple[int, int]:
    """Run a program to its end; return the number of its process, and its status as :mod:`subprocess` has it.

    A file that has the right to be run, but is neither a program of this system nor begins with ``#!``, is run by the
    system's shell, as shells, ``env`` and ``nice`` do.

    Raises:
        BadInput: It cannot be run.
    """
    process = _start(program, environment)
    with _passing_on_signals(process):
        while True:
            try:
                return process.pid, process.wait()
            except KeyboardInterrupt:
                # The program has received it, too, and decides; what the command prints and writes comes in any case.
                continue


@contextmanager
def _passing_on_signals(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Send the program the signals that end the command alone: otherwise the program would go on after it."""
    kinds = [kind for kind in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(kind) == signal.SIG_DFL]
    for kind in kinds:
        signal.signal(kind, lambda number, _: process.send_signal(number))
    try:
        yield
    finally:
        for kind in kinds:
            signal.signal(kind, signal.SIG_DFL)


def _start(program: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(program, env=environment)
    except OSError as error:
        problem, number = error.strerror or str(error), error.errno
    except ValueError as error:
        problem, number = str(error), 0
    script = shutil.which(program[0]) if number == errno.ENOEXEC else None
    if script is None or not _is_text(script):
        raise BadInput(f"{program[0]}: cannot be run: {problem}")
    return subprocess.Popen([_SHELL, script, *program[1:]], env=environment)


def _is_text(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return b"\0" not in file.read(_BEGINNING_BYTES)
    except OSError:
        return False
