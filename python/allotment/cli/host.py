"""The ``run`` command and ``record --host``: any program, with its large blocks of host memory in one pool."""

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from allotment._core import format_size, one_line
from allotment.cli.child import SIGNALLED, run
from allotment.cli.command import BAD_INPUT, BadInput, Outcome
from allotment.cli.files import check_distinct, check_output, locked_output
from allotment.cli.host_figures import ProcessFigures, read_figures, summary, was_loaded
from allotment.cli.loadable import problem_of

if TYPE_CHECKING:
    from allotment.trace.host import HostJournal

#: The library, which is beside this file in a wheel, and in a checkout after `make develop`.
LIBRARY: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "liballotment_preload.so")

#: Bytes from which on a block is large by default: the C library, too, maps each block from there on.
DEFAULT_THRESHOLD: Final = 128 << 10

#: Bytes of free pages that keep their memory by default: as many as the C library keeps at most.
DEFAULT_KEEP: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Options of a run. All sizes are in bytes."""

    limit: int | None = None
    threshold: int = DEFAULT_THRESHOLD
    keep: int = DEFAULT_KEEP
    #: The trace of the large blocks, and the table of their bytes over time.
    output: str | None = None
    timeline: str | None = None
    #: Whether the figures are printed at the end.
    has_summary: bool = True


def run_host_program(program: Sequence[str], options: HostOptions) -> Outcome:
    """Run a program with its large blocks in a pool; return its exit status.

    Raises:
        BadInput: The program cannot be run, the library cannot be loaded into it, or an option cannot be used.
    """
    _check(program[0], options)
    with _locked(options), _temporary_folder() as folder:
        record = options.output and os.path.abspath(options.output)
        if record is None and options.timeline is not None:
            record = os.path.join(folder, "events")
        earlier = [] if record is None else _files_at(record)
        environment = os.environ | _environment(options, folder, record)
        pid, status = run(program, environment)
        if not was_loaded(folder, pid):
            return _not_loaded(program[0])
        figures = read_figures(folder)
        if options.has_summary:
            for line in summary(figures, options.limit, options.threshold):
                _say(line)
        if status < 0:
            status = SIGNALLED - status
        if record is not None:
            is_recorded = _say_unrecorded(record, figures, options)
            if not _finish(record, earlier, options, figures) or not is_recorded:
                status = status or BAD_INPUT
    return Outcome("", status)


@contextmanager
def _locked(options: HostOptions) -> Iterator[None]:
    """Have other runs refused that write the same files: the journals of two runs would mix.

    Raises:
        BadInput: One does.
    """
    with ExitStack() as locks:
        if options.output is not None:
            locks.enter_context(locked_output("-o", options.output))
        if options.timeline is not None:
            locks.enter_context(locked_output("--timeline", options.timeline))
        yield


def _temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    """Return a folder for the figures of the processes.

    Raises:
        BadInput: There is no room for one.
    """
    try:
        return tempfile.TemporaryDirectory(prefix="allotment-run-")
    except OSError as error:
        raise BadInput(f"no temporary folder can be made (TMPDIR names another place): {error}") from error


def _check(program: str, options: HostOptions) -> None:
    """Check that the library can be loaded into a program, and that the options go together."""
    if sys.platform != "linux":
        raise BadInput(f"only Linux loads a library into other programs, not {sys.platform}")
    if not os.path.exists(LIBRARY):
        raise BadInput(f"{LIBRARY} is missing: install the wheel, or run 'make develop' in a checkout")
    if any(character in LIBRARY for character in ": "):
        raise BadInput(
            f"{LIBRARY}: the loader takes no path with a blank or a colon: install allotment elsewhere"
        )
    if options.limit is not None and options.limit < options.threshold:
        raise BadInput(
            f"--limit {options.limit} is below --threshold {options.threshold}: no large block would fit; raise the "
            "limit or lower the threshold"
        )
    outputs = [("-o", options.output), ("--timeline", options.timeline)]
    written = [(option, path) for option, path in outputs if path is not None]
    for option, path in written:
        check_output(option, path)
    check_distinct([], written)
    problem = problem_of(program)
    if problem is not None:
        raise BadInput(f"{program}: {problem}: nothing was run")


def _environment(options: HostOptions, folder: str, record: str | None) -> dict[str, str]:
    """Return the environment variables that pass the options to the library in the program."""
    settings = {
        "THRESHOLD": str(options.threshold),
        "KEEP": str(options.keep),
        "STATISTICS": folder,
        "STARTER": str(os.getpid()),
        "START": str(time.monotonic_ns()),
    }
    if options.limit is not None:
        settings["LIMIT"] = str(options.limit)
    if record is not None:
        settings["RECORD"] = record
    before = os.environ.get("LD_PRELOAD")
    preload = LIBRARY if not before else f"{LIBRARY}:{before}"
    # A run within another one has only its own settings.
    unset = {name: "" for name in os.environ if name.startswith("ALLOTMENT_HOST_")}
    return (
        unset | {f"ALLOTMENT_HOST_{name}": text for name, text in settings.items()} | {"LD_PRELOAD": preload}
    )


def _not_loaded(program: str) -> Outcome:
    _say(
        f"{program}: the library was not loaded into it, so that its memory was neither limited nor recorded: "
        "programs that are linked statically, or run with other rights, load none"
    )
    return Outcome("", BAD_INPUT)


def _files_at(record: str) -> list[str]:
    # Not for runs without a trace, which start sooner so.
    from allotment.trace.host import host_files

    return host_files(record)


def _say_unrecorded(record: str, figures: Sequence[ProcessFigures], options: HostOptions) -> bool:
    """Print which processes could not write all of their events; return whether there are none."""
    cut = [one for one in figures if one.unrecorded]
    # Not for runs without a trace, which start sooner so.
    from allotment.trace.blocks import counted

    # The processes have named the error themselves.
    what = record if options.output is not None else f"the record of {options.timeline}"
    for one in cut:
        events = counted(one.unrecorded, "event")
        _say(f"{what}: lacks the last {events} of {one.name} ({one.pid}): its record ended early")
    return not cut


def _finish(
    record: str, earlier: Sequence[str], options: HostOptions, figures: Sequence[ProcessFigures]
) -> bool:
    """Turn the journals into traces, and write the table; return whether all files were written.

    ``earlier`` are the files that were there before the program ran: other runs' traces.
    """
    from allotment.trace.host import host_journals, write_host_timeline

    option = "--timeline" if options.output is None else "-o"
    try:
        journals = host_journals(record, earlier)
    except (OSError, ValueError) as error:
        return _not_written(option, record, error)
    is_written = True
    if options.timeline is not None:
        try:
            write_host_timeline(os.path.abspath(options.timeline), journals)
        except OSError as error:
            is_written = _not_written("--timeline", options.timeline, error)
    if options.output is None:
        return is_written
    if not journals:
        kept = "; the file that was there is kept" if record in earlier else ""
        reason = f"no process had a block of {format_size(options.threshold)} or more"
        if any(one.unrecorded for one in figures):
            reason = "no process could begin its record"
        _say(f"{record} was not written: {reason}{kept}")
    for number, journal in enumerate(journals):
        # If there was a file, the first journal has another name, and replaces the file now.
        replaces = number == 0 and record in earlier
        is_written &= _finish_one(journal, record if replaces else journal.path)
    return is_written


def _finish_one(journal: "HostJournal", path: str) -> bool:
    from allotment.trace.host import finish

    if journal.is_running:
        _say(f"{journal.path}: process {journal.pid} still runs and goes on recording; the file is readable")
        return True
    try:
        finish(journal, path)
    except (OSError, ValueError) as error:
        _not_written("-o", path, error)
        _say(f"{journal.path} has the events, and is readable")
        return False
    return True


def _not_written(option: str, path: str, error: Exception) -> bool:
    """Print that a file was not written; return False. The exit status stays the program's, unless that is 0."""
    _say(f"{option} {path}: was not written: {error}")
    return False


def _say(text: str) -> None:
    click.echo(one_line(f"allotment: {text}"), err=True)
