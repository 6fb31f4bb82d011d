"""The ``replay`` command: reads files, replays them, and writes what was asked for."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import click

from allotment._core import one_line
from allotment.cli.command import REFUSED, BadInput, Outcome
from allotment.cli.files import check_distinct
from allotment.cli.progress import progress
from allotment.trace import (
    Columns,
    ReplayOptions,
    Report,
    Search,
    Trace,
    TraceError,
    read_all_columns,
    replay_at_min_limit,
    replay_trace,
)
from allotment.trace.reader import checked

#: Bytes of trace files from which on a replay shows its progress. Packed files of this length take a second.
_LONG_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Outputs:
    """Files that a replay of one trace writes, ``None`` for none."""

    offsets: str | None = None
    timeline: str | None = None
    html: str | None = None
    png: str | None = None
    #: Formats and files.
    exports: tuple[tuple[str, str], ...] = ()

    @property
    def files(self) -> list[tuple[str, str]]:
        """The options of the files to write, with the files."""
        single = {
            "--offsets": self.offsets,
            "--timeline": self.timeline,
            "--html": self.html,
            "--png": self.png,
        }
        chosen = [(option, file) for option, file in single.items() if file is not None]
        return chosen + [("--export", file) for _, file in self.exports]

    @property
    def any(self) -> bool:
        """Whether there is a file to write."""
        return bool(self.files)

    def check(self, paths: Sequence[str], *, min_limit: bool) -> None:
        """Check that there is one trace, that it is none of the files, and that no two files are the same.

        Raises:
            click.UsageError: A file cannot be written beside the other arguments.
        """
        for option, _ in self.files:
            if min_limit:
                raise click.UsageError(f"'{option}' and '--min-limit' exclude each other")
            if len(paths) > 1:
                raise click.UsageError(f"'{option}' is of one TRACE, not of {len(paths)}")
        check_distinct([("TRACE", path) for path in paths], self.files)


def replay_files(
    paths: Sequence[str],
    options: ReplayOptions,
    search: Search | None,
    outputs: Outputs,
    events: tuple[int, int | None],
    *,
    round_sizes: int,
    as_json: bool,
) -> Outcome:
    """Replay all programs of the files and write what was asked for; return a table or JSON.

    Args:
        paths: The traces.
        options: Options of the pool.
        search: Options of the search for limits; ``None`` for none.
        outputs: Files to write.
        events: The events that pictures show.
        round_sizes: Each request is rounded up to a multiple of these bytes.
        as_json: Whether to return JSON.
    """
    programs: list[Columns] = []
    reports = _replay(paths, options, search, outputs, round_sizes, programs)
    if outputs.offsets is not None:
        _write_offsets(outputs.offsets, reports[0])
    if outputs.timeline is not None:
        from allotment.cli.what_if import write_timeline_of

        write_timeline_of(outputs.timeline, programs, options)
    if outputs.html is not None or outputs.png is not None:
        from allotment.cli.pictures import write_pictures

        write_pictures(outputs.html, outputs.png, programs, options, events)
    if outputs.exports:
        from allotment.cli.exports import write_exports

        write_exports(outputs.exports, programs, options)
    text = _as_json(reports) if as_json else _as_table(reports)
    return Outcome(text, REFUSED if any(report.result.refused for report in reports) else 0)


def _replay(
    paths: Sequence[str],
    options: ReplayOptions,
    search: Search | None,
    outputs: Outputs,
    round_sizes: int,
    kept: list[Columns],
) -> list[Report]:
    """Read all files, then replay them, so that an invalid last file is reported before any replay.

    ``kept`` receives what was read, if files are made of it.
    """
    with_offsets = outputs.offsets is not None
    traces: list[Trace] = []
    reports: list[Report] = []
    long = search is not None or sum(map(_nbytes, paths)) >= _LONG_BYTES
    with progress(2 * len(paths), long=long) as steps:
        for path in paths:
            steps.begin(f"reading {one_line(path)}")
            try:
                programs = read_all_columns(path, details=bool(outputs.exports))
                if round_sizes > 1:
                    programs = [one.with_rounded_sizes(round_sizes) for one in programs]
                traces += map(checked, programs)
            except TraceError as error:
                raise BadInput(str(error)) from error
            if outputs.any:
                kept += programs
        if with_offsets and len(traces) > 1:
            raise BadInput(f"--offsets takes the offsets of one program, and {paths[0]} has {len(traces)}")
        for trace in traces:
            steps.begin(f"replaying {one_line(trace.path)}")
            if search is not None:
                try:
                    reports.append(replay_at_min_limit(trace, options, search, steps.update))
                except TraceError as error:
                    raise BadInput(str(error)) from error
            else:
                reports.append(replay_trace(trace, options, with_offsets=with_offsets))
    return reports


def _nbytes(path: str) -> int:
    """Return the length of a file, 0 if it cannot be told: its reader reports what is wrong."""
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0


def _write_offsets(path: str, report: Report) -> None:
    from allotment.trace.offsets import write_offsets

    try:
        write_offsets(path, report)
    except OSError as error:
        raise BadInput(f"--offsets {path}: cannot be written: {error.strerror or error}") from error


def _as_json(reports: list[Report]) -> str:
    figures = [report.as_dict() for report in reports]
    return json.dumps(figures[0] if len(figures) == 1 else {"traces": figures}, indent=2) + "\n"


def _as_table(reports: list[Report]) -> str:
    from allotment.trace.table import render_table

    return render_table(reports, sys.stdout)
