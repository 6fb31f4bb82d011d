"""The options ``--compare``, ``--sweep`` and ``--timeline`` of ``replay``."""

import json
from collections.abc import Sequence
from typing import Any

from allotment._core import one_line
from allotment.cli.command import BadInput
from allotment.cli.progress import progress
from allotment.trace import (
    Columns,
    ReplayOptions,
    Trace,
    TraceError,
    compare,
    read_traces,
    sweep,
    timeline,
)
from allotment.trace.compare_table import render_comparisons, render_sweeps
from allotment.trace.timeline import write_timeline, write_timelines


def compare_traces(paths: Sequence[str], options: ReplayOptions, seconds: float, *, as_json: bool) -> str:
    """Compare policies for each program of the files; return a table or JSON."""
    comparisons = []
    traces = _read(paths)
    with progress(len(traces), long=True) as steps:
        for trace in traces:
            steps.begin(f"comparing policies for {one_line(trace.title)}")
            try:
                comparisons.append(compare(trace, options, seconds=seconds, progress=steps.update))
            except TraceError as error:
                raise BadInput(str(error)) from error
    return _json([one.as_dict() for one in comparisons]) if as_json else render_comparisons(comparisons)


def sweep_traces(
    paths: Sequence[str], options: ReplayOptions, limits: Sequence[int] | None, *, as_json: bool
) -> str:
    """Count refusals over a range of limits for each program of the files; return a table or JSON."""
    sweeps = []
    traces = _read(paths)
    with progress(len(traces), long=True) as steps:
        for trace in traces:
            steps.begin(f"replaying {one_line(trace.title)}")
            sweeps.append(sweep(trace, options, limits=limits, progress=steps.update))
    return _json([one.as_dict() for one in sweeps]) if as_json else render_sweeps(sweeps)


def write_timeline_of(file: str, programs: Sequence[Columns], options: ReplayOptions) -> None:
    """Write the bytes live, in use and reserved after each event of a trace's programs to a table."""
    try:
        found = [
            (one.origin.device or f"program {number}", timeline(one, options))
            for number, one in enumerate(programs)
        ]
    except TraceError as error:
        raise BadInput(str(error)) from error
    try:
        if len(found) == 1:
            write_timeline(file, found[0][1])
        else:
            write_timelines(file, found)
    except OSError as error:
        raise BadInput(f"--timeline {file}: cannot be written: {error.strerror or error}") from error


def _read(paths: Sequence[str]) -> list[Trace]:
    """Read all files first, so that an invalid last one is reported before any replay."""
    try:
        return [trace for path in paths for trace in read_traces(path)]
    except TraceError as error:
        raise BadInput(str(error)) from error


def _json(figures: list[dict[str, Any]]) -> str:
    return json.dumps(figures[0] if len(figures) == 1 else {"traces": figures}, indent=2) + "\n"
