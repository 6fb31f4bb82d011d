"""The ``record`` command: runs a program whose pools record themselves."""

import itertools
import os
from collections.abc import Sequence

import click

from allotment._core import one_line
from allotment.cli.child import SIGNALLED, run
from allotment.cli.command import BAD_INPUT, Outcome
from allotment.cli.files import check_output, locked_output
from allotment.trace.host import host_files
from allotment.trace.journal import read_journal_of, running_process
from allotment.trace.recorded import cut_short


def record_program(
    output: str, program: Sequence[str], *, tags: bool, stacks: int = 0, last: int | None = None
) -> Outcome:
    """Run a program with ``ALLOTMENT_RECORD`` set; return its exit status.

    Args:
        output: The trace. A file that is there is replaced at the end, and stays if nothing was recorded.
        program: The program and its arguments.
        tags: Whether pools note which line of Python asked for each allocation.
        stacks: Number of frames of Python's stack to note for each allocation.
        last: Number of the last events to keep; ``None`` for all.

    Raises:
        BadInput: The program cannot be run, or the trace cannot be written.
    """
    output = os.path.abspath(output)
    check_output("-o", output)
    settings = {"RECORD_STACKS": str(stacks), "RECORD_EVENTS": str(last or 0)}
    if tags:
        settings["OWNER_TAGS"] = "1"
    with locked_output("-o", output):
        earlier = os.path.exists(output)
        # The file that is there stays until a new one is complete.
        record = _free_name(f"{output}.new") if earlier else output
        settings["RECORD"] = record
        environment = os.environ | {f"ALLOTMENT_{name}": text for name, text in settings.items()}
        _, status = run(program, environment)
        if not os.path.exists(record):
            kept = "; the file that was there is kept" if earlier else ""
            _say(f"{output} was not written: the program made no pool{kept}")
        else:
            cut = [name for name in host_files(record) if _is_cut_short(name)]
            if cut:
                status = status or BAD_INPUT
            if earlier:
                _rename(record, output)
    return Outcome("", status if status >= 0 else SIGNALLED - status)


def _is_cut_short(path: str) -> bool:
    """Return whether a recording could not be written in full, and say so."""
    try:
        events = read_journal_of(path)
    except (OSError, ValueError):
        return False
    if events is None or not events.error:
        return False
    _say(f"{path}: {cut_short(events)}")
    return True


def _free_name(path: str) -> str:
    """Return the first of ``path``, ``path.2``, ``path.3``, ... that no file has, nor one with a suffix behind it."""
    names = itertools.chain([path], (f"{path}.{number}" for number in itertools.count(2)))
    return next(name for name in names if not host_files(name))


def _rename(record: str, output: str) -> None:
    """Give the files of a program the names that they would have had if ``output`` had not been there."""
    for name in host_files(record):
        suffix = name[len(record) :]
        if (pid := running_process(name)) is not None:
            # At its end the process looks for the file under this name.
            _say(f"{name}: process {pid} still runs and goes on recording; the file is readable")
            continue
        target = output + suffix
        try:
            os.replace(name, target if not suffix else _free_name(target))
        except OSError as error:
            _say(f"{target} was not written: {error.strerror or error}; {name} has the events")


def _say(text: str) -> None:
    click.echo(one_line(f"allotment: {text}"), err=True)
