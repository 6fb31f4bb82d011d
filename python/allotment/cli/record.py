"""The ``record`` command: runs a program whose pools record themselves."""

import os
import subprocess
from collections.abc import Sequence

import click

from allotment._core import one_line
from allotment.cli.command import BadInput, Outcome
from allotment.cli.files import check_output

#: Added to the number of the signal that ended a program, as shells do.
_SIGNALLED = 128


def record_program(
    output: str, program: Sequence[str], *, tags: bool, stacks: int = 0, last: int | None = None
) -> Outcome:
    """Run a program with ``ALLOTMENT_RECORD`` set; return its exit status.

    Args:
        output: The trace. A file that is there is replaced.
        program: The program and its arguments.
        tags: Whether pools note which line of Python asked for each allocation.
        stacks: Number of frames of Python's stack to note for each allocation.
        last: Number of the last events to keep; ``None`` for all.

    Raises:
        BadInput: The program cannot be run, or the trace cannot be written.
    """
    output = os.path.abspath(output)
    check_output("-o", output)
    if os.path.exists(output):
        os.unlink(output)
    settings = {"RECORD": output, "RECORD_STACKS": str(stacks), "RECORD_EVENTS": str(last or 0)}
    environment = os.environ | {f"ALLOTMENT_{name}": text for name, text in settings.items()}
    if tags:
        environment["ALLOTMENT_OWNER_TAGS"] = "1"
    problem = None
    try:
        status = subprocess.run(program, env=environment, check=False).returncode
    except OSError as error:
        problem = f"{program[0]}: cannot be run: {error.strerror or error}"
    if problem is not None:
        raise BadInput(problem)
    if not os.path.exists(output):
        click.echo(one_line(f"allotment: {output} was not written: the program made no pool"), err=True)
    return Outcome("", status if status >= 0 else _SIGNALLED - status)
